"""Deliver what waits to a backend on loopback, and die before a given statement.

`python outbox_program.py ADDRESS DIRECTORY` makes `DIRECTORY/<n>` for n = 1, 2, …: each a copy of the same
outbox, left by a process that was killed before the n-th statement of its writer, or, as the numbers go
on, right after its n-th call of the backend was answered. It prints each n, and `done` when a process came
to its end. The backend is told which copy a call is of.
"""

import sqlite3
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory.backends.memu_http import JsonService
from memory.items import Item
from memory.outbox.backend import Backend, BackendHealth
from memory.outbox.breaker import Breaker, BreakerLimits
from memory.outbox.delivery import Link, NewDelivery
from memory.outbox.worker import DeliveryWorker
from memory.scope import Scope
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import COLUMNS, item_of, put_item_blocking
from memory.stores.sqlite.outbox import SqliteOutboxStore, enqueue_blocking
from tests.support.episodes import AT, open_memory
from tests.support.killing import KillPoints, kill_at_each

ITEMS = ("epi_1", "epi_2", "笔记_3")
GONE = "epi_gone"
LATER = AT + timedelta(days=1)


class Mentions:
    """A backend that hands each call to a server, with its key."""

    name = "told"

    def __init__(self, address: str, of: str, answered: Callable[[], None]) -> None:
        self._service = JsonService(address, name="It", timeout_s=30, max_bytes=1000)
        self._of = of
        self._answered = answered

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        await self._tell("put", item.id, idempotency_key)
        return [Link(item_id=item.id, backend=self.name, remote_kind="file", remote_id=item.id)]

    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        await self._tell("forget", item_id, idempotency_key)

    async def _tell(self, what: str, item_id: str, key: str) -> None:
        body = {"of": self._of, "what": what, "item": item_id, "key": key}
        await self._service.ask("POST", "/told", body)
        self._answered()

    async def check(self) -> BackendHealth:
        await anyio.lowlevel.checkpoint()
        return BackendHealth(name=self.name, state="ok")

    async def close(self) -> None:
        await self._service.close()


class Items:
    """The items of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def current(self, item_id: str) -> Item | None:
        row = await self._database.row(f"SELECT {COLUMNS} FROM items WHERE id = ?", (item_id,))
        return None if row is None else item_of(row)


def item(item_id: str) -> Item:
    return Item(
        id=item_id,
        kind="episode",
        scope=Scope(owner_id="ann"),
        title=item_id,
        summary="",
        body=item_id,
        source="",
        occurred_at=AT,
        updated_at=AT,
    )


def fill(connection: sqlite3.Connection) -> None:
    """Write items with their deliveries, and one that is to be forgotten."""
    for entry in ITEMS:
        put_item_blocking(connection, item(entry))
        enqueue_blocking(connection, [new("put", entry)], AT)
    enqueue_blocking(connection, [new("forget", GONE)], AT)


def new(operation: str, item_id: str) -> NewDelivery:
    return NewDelivery(
        backend="told",
        operation="put" if operation == "put" else "forget",
        item_id=item_id,
        owner_id="ann",
        revision=1,
    )


async def prepare(directory: Path) -> None:
    async with open_memory(directory) as database:
        await database.write(fill)


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


async def deliver(
    database: Database,
    address: str,
    of: str,
    now: datetime,
    answered: Callable[[], None] = lambda: None,
) -> int:
    """Deliver whatever is due at a moment."""
    return await drain(Mentions(address, of, answered), database, now)


async def work_until(address: str, directory: Path, points: KillPoints) -> None:
    """Deliver, and be killed at a point: before a statement, or after an answer."""
    async with open_memory(directory) as database:
        await database.write(points.watch)
        await deliver(database, address, directory.name, AT, points.pass_point)


if __name__ == "__main__":
    kill_at_each(Path(sys.argv[2]), prepare, partial(work_until, sys.argv[1]))
