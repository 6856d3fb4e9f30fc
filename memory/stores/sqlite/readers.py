"""Reading connections for work that may take long and may be given up: searches.

Each runs in a worker thread on a connection of its own. Whoever stops waiting stops the work, too:
SQLite looks every few thousand steps whether anybody still wants the answer.
"""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import anyio
import anyio.to_thread

from memory.errors import StoreDamaged, StoreUnavailable
from memory.stores.sqlite.database import translating

T = TypeVar("T")

MAX_READERS: Final = 4
_BUSY_MS: Final = 1000
_STEPS: Final = 4000
"""So many steps of SQLite's take well below a millisecond."""


class Readers:
    """Some connections to one file, opened as they are needed; close it.

    `on_damage` hears, in a worker thread, of what cannot be understood in the file.
    """

    def __init__(
        self, path: Path, *, on_damage: Callable[[StoreDamaged], None] = lambda _: None
    ) -> None:
        self._path = path
        self._on_damage = on_damage
        self._limiter = anyio.CapacityLimiter(MAX_READERS)
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on a connection that can only read; cancelled, the statement is stopped.

        Raises:
            StoreUnavailable: the file cannot be read, or this is closed.
        """
        given_up = threading.Event()
        try:
            return await anyio.to_thread.run_sync(
                partial(self._run_blocking, work, given_up),
                abandon_on_cancel=True,
                limiter=self._limiter,
            )
        finally:
            given_up.set()

    def close(self) -> None:
        """Close what is idle; what still runs is closed when it ends. Idempotent."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for one in idle:
            one.close()

    def _run_blocking(
        self, work: Callable[[sqlite3.Connection], T], given_up: threading.Event
    ) -> T:
        try:
            with translating("read"):
                return self._work_blocking(work, given_up)
        except StoreDamaged as exc:
            self._on_damage(exc)
            raise

    def _work_blocking(
        self, work: Callable[[sqlite3.Connection], T], given_up: threading.Event
    ) -> T:
        connection = self._take_blocking()
        try:
            connection.set_progress_handler(given_up.is_set, _STEPS)
            return work(connection)
        finally:
            connection.set_progress_handler(None, 0)
            self._give_back(connection)

    def _take_blocking(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise StoreUnavailable("The database is closed.")
            if self._idle:
                return self._idle.pop()
        return self._open_blocking()

    def _open_blocking(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            connection.row_factory = sqlite3.Row
            connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
            connection.execute("PRAGMA query_only=ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        with closing(connection):
            pass
