"""Notifications between programs that use one database: short texts that nobody stores.

Whoever does not listen at that moment gets none. Both connections stay outside of transactions, and
neither is one of those that read and write.
"""

from collections.abc import Callable
from contextlib import aclosing
from typing import Any, Final

import anyio
import psycopg
from psycopg import sql

from memory.errors import StoreUnavailable
from memory.stores.postgres.connections import PARAMETERS, UNREADABLE
from memory.stores.postgres.driver_errors import translating_errors

MOST_BYTES: Final = 7_999
"""PostgreSQL refuses a longer text."""
_SEND_S: Final = 2.0
"""Ends a sending to a server that is silent; begun, it is not cancelled: the driver would wait."""
_SILENT: Final = "The database cannot be written: it does not answer."
Driver = psycopg.AsyncConnection[Any]


class PostgresNotifications:
    """One channel of a database. Close it."""

    def __init__(self, url: str, channel: str) -> None:
        """Initialise; `channel` is at most 63 bytes long."""
        self._url = url
        self._channel = channel
        self._sender: Driver | None = None

    async def send(self, payload: str) -> None:
        """Send a text of at most `MOST_BYTES` to all that listen, the sender's own program too.

        Raise `StoreUnavailable` if it may not have been sent. One call at a time.
        """
        with translating_errors("written"):
            if self._sender is None:
                self._sender = await self._connect()
            try:
                with anyio.fail_after(_SEND_S, shield=True):
                    await self._sender.execute("SELECT pg_notify(%s, %s)", (self._channel, payload))
            except BaseException as exc:
                await self.close()
                if isinstance(exc, TimeoutError):
                    raise StoreUnavailable(_SILENT) from exc
                raise

    async def listen(
        self, on_payload: Callable[[str], None], on_listening: Callable[[], None]
    ) -> None:
        """Call `on_payload` with each text that is sent from the call of `on_listening` on.

        Ends with `StoreUnavailable` alone, when the connection cannot be made or is lost.
        """
        with translating_errors("read"):
            connection = await self._connect()
            try:
                listen = sql.SQL("LISTEN {}").format(sql.Identifier(self._channel))
                await connection.execute(listen)
                on_listening()
                async with aclosing(connection.notifies()) as notifications:
                    async for notification in notifications:
                        on_payload(notification.payload)
            finally:
                await connection.close()

    async def close(self) -> None:
        """Close the connection that sends; idempotent, and `send` opens another one."""
        sender, self._sender = self._sender, None
        if sender is not None:
            await sender.close()

    async def _connect(self) -> Driver:
        try:
            return await psycopg.AsyncConnection.connect(self._url, autocommit=True, **PARAMETERS)
        except psycopg.ProgrammingError:  # its text quotes the address, and the password in it
            raise StoreUnavailable(UNREADABLE) from None
