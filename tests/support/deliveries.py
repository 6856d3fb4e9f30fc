"""Delivers what waits in an outbox on a database, at a given moment."""

from datetime import datetime, timedelta

from memory.items import Item
from memory.outbox.backend import Backend
from memory.outbox.breaker import Breaker, BreakerLimits
from memory.outbox.worker import DeliveryWorker
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import COLUMNS, item_of
from memory.stores.sqlite.outbox import SqliteOutboxStore
from tests.support.episodes import AT

LATER = AT + timedelta(days=1)


class Items:
    """The items of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def current(self, item_id: str) -> Item | None:
        row = await self._database.row(f"SELECT {COLUMNS} FROM items WHERE id = ?", (item_id,))
        return None if row is None else item_of(row)


async def drain(backend: Backend, database: Database, now: datetime) -> int:
    """Deliver whatever is due at a moment to a backend, and close it."""
    try:
        return await DeliveryWorker(
            backend,
            SqliteOutboxStore(database),
            Items(database),
            Breaker(BreakerLimits()),
            now=lambda: now,
            draw=lambda: 0.5,
        ).drain()
    finally:
        await backend.close()
