"""Delivers what waits in an outbox on a database, at a given moment."""

from datetime import datetime, timedelta

from memory.outbox.backend import Backend
from memory.outbox.store import SqlOutboxStore
from memory.outbox.worker import DeliveryWorker
from memory.remote.breaker import Breaker, BreakerLimits
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import SqlItemStore
from tests.support.episodes import AT

LATER = AT + timedelta(days=1)


async def drain(backend: Backend, database: Database, now: datetime) -> int:
    """Deliver whatever is due at a moment to a backend, and close it."""
    try:
        return await DeliveryWorker(
            backend,
            SqlOutboxStore(database),
            SqlItemStore(database).current,
            Breaker(BreakerLimits()),
            now=lambda: now,
            draw=lambda: 0.5,
        ).drain()
    finally:
        await backend.close()
