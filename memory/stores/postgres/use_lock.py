"""A lock on a schema for as long as a connection lasts: of one program, or of several together."""

import logging
import threading
from contextlib import suppress
from typing import Final, Literal

import psycopg

from memory.stores.postgres.connections import Driver, connect_blocking

_LOOK_S: Final = 1.0
Use = Literal["alone", "with_others"]
_TAKE: Final = {
    "alone": "SELECT pg_try_advisory_lock(hashtextextended('sole use of ' || %s, 0))",
    "with_others": "SELECT pg_try_advisory_lock_shared(hashtextextended('sole use of ' || %s, 0))",
}
_TAKE_ONCE: Final = "SELECT pg_try_advisory_xact_lock(hashtextextended('sole use of ' || %s, 0))"
_log = logging.getLogger(__name__)


def is_unused_blocking(connection: Driver, schema: str) -> bool:
    """Return whether no program holds the lock; until the open transaction ends none takes it."""
    row = connection.execute(_TAKE_ONCE, (schema,)).fetchone()
    return bool(row and row[0])


class UseLock:
    """Holds the lock, and takes it again when the server was gone for a while."""

    def __init__(self, url: str, schema: str, use: Use = "alone") -> None:
        self._url = url
        self._schema = schema
        self._take = _TAKE[use]
        self._connection: Driver | None = None
        self._closing = threading.Event()
        self._watcher = threading.Thread(target=self._watch_blocking, daemon=True)
        self.is_held = False
        """As of a second ago at most; False while the server cannot be reached."""

    def take_blocking(self) -> bool:
        """Take the lock and hold it until `close_blocking`; False if a program has it that uses the
        schema otherwise.

        Raise `psycopg.Error` if the server cannot be reached.
        """
        self.is_held = self._try_blocking()
        if self.is_held:
            self._watcher.start()
        return self.is_held

    def close_blocking(self) -> None:
        """Release the lock; idempotent."""
        self._closing.set()
        if self._watcher.is_alive():
            self._watcher.join()
        self._drop_blocking()

    def _watch_blocking(self) -> None:
        while not self._closing.wait(_LOOK_S):
            was_held = self.is_held
            try:
                self.is_held = self._try_blocking()
            except psycopg.Error:
                self._drop_blocking()
                with suppress(psycopg.Error):  # the server may be back already
                    self.is_held = self._try_blocking()
            if was_held and not self.is_held:
                _log.error("database_lock_lost")

    def _try_blocking(self) -> bool:
        if self._connection is not None:
            self._connection.execute("SELECT 1")
            return True
        connection = connect_blocking(self._url, self._schema)
        try:
            row = connection.execute(self._take, (self._schema,)).fetchone()
            is_taken = bool(row and row[0])
        except BaseException:
            connection.close()
            raise
        if is_taken:
            self._connection = connection
        else:
            connection.close()
        return is_taken

    def _drop_blocking(self) -> None:
        self.is_held = False
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()
