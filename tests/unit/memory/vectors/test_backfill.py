"""Holes of the vector index: what is looked up, what is delivered once more, and what is left alone."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest

from memory.errors import StoreUnavailable
from memory.items import Item
from memory.outbox.delivery import Delivery, NewDelivery
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import delete_item_blocking, put_item_blocking
from memory.stores.sqlite.outbox import SqliteOutboxStore, enqueue_blocking
from memory.stores.sqlite.vectors import SqliteVectorDeliveries
from memory.vectors import backfill
from memory.vectors.backfill import VectorBackfill
from tests.conformance.suites.item_values import AT, item


class Index:
    """Lacks some items."""

    def __init__(self, *lacking: str) -> None:
        self.lacking = set(lacking)
        self.asked: list[list[str]] = []

    async def missing(self, item_ids: Sequence[str]) -> set[str]:
        self.asked.append(list(item_ids))
        return self.lacking & set(item_ids)


class Again:
    """Notes what is delivered again."""

    def __init__(self) -> None:
        self.item_ids: list[str] = []
        self.is_broken = False
        self.made = anyio.Event()

    async def again(self, item_ids: Sequence[str]) -> int:
        if self.is_broken:
            raise StoreUnavailable("It is broken.")
        self.item_ids += item_ids
        self.made.set()
        return len(item_ids)


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "_PAUSE_S", 0)


@asynccontextmanager
async def running(one: VectorBackfill) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        await tasks.start(one.run)
        yield
        tasks.cancel_scope.cancel()


async def test_what_the_index_lacks_is_delivered_again_and_nothing_else() -> None:
    again, woken = Again(), anyio.Event()
    one = VectorBackfill(Index("b").missing, again.again, wake=woken.set)
    async with running(one):
        one.note(["a", "b", "c"])
        with anyio.fail_after(30):
            await woken.wait()
    assert again.item_ids == ["b"]


async def test_what_is_noted_later_is_looked_up_too() -> None:
    again, index = Again(), Index("a", "b")
    one = VectorBackfill(index.missing, again.again)
    async with running(one):
        for name in ("a", "b"):
            again.made = anyio.Event()
            one.note([name])
            with anyio.fail_after(30):
                await again.made.wait()
    assert again.item_ids == ["a", "b"]


async def test_an_item_that_waits_is_looked_up_once_and_many_in_batches() -> None:
    index = Index()
    one = VectorBackfill(index.missing, Again().again)
    ids = [f"i{n}" for n in range(120)]
    one.note(ids)
    one.note(ids)
    for _ in range(3):
        await one.look_up()
    assert [len(some) for some in index.asked] == [50, 50, 20]
    assert [each for some in index.asked for each in some] == ids


async def test_no_more_than_a_bound_wait() -> None:
    index = Index()
    one = VectorBackfill(index.missing, Again().again)
    one.note(f"i{n}" for n in range(3 * backfill.MAX_WAITING))
    for _ in range(60):
        await one.look_up()
    assert sum(len(some) for some in index.asked) == backfill.MAX_WAITING


async def test_a_store_that_fails_ends_nothing() -> None:
    again, index = Again(), Index("a")
    again.is_broken = True
    one = VectorBackfill(index.missing, again.again)
    async with running(one):
        one.note(["a"])
        with anyio.fail_after(30):
            while not index.asked:
                await anyio.lowlevel.checkpoint()
        again.is_broken = False
        one.note(["a"])
        with anyio.fail_after(30):
            await again.made.wait()
    assert again.item_ids == ["a"]


# in SQLite


def delivery(one: Item) -> NewDelivery:
    return NewDelivery(
        backend="vectors",
        operation="put",
        item_id=one.id,
        owner_id=one.scope.owner_id,
        revision=one.revision,
    )


async def waiting(outbox: SqliteOutboxStore) -> list[Delivery]:
    return list(await outbox.page("ann", "pending", limit=9))


async def test_a_delivered_item_is_enqueued_once_more_and_only_once(database: Database) -> None:
    one = item(body="payroll")
    outbox, deliveries = (
        SqliteOutboxStore(database),
        SqliteVectorDeliveries(database, lambda: AT),
    )
    await database.write(partial(put_item_blocking, item=one))
    await database.write(partial(enqueue_blocking, deliveries=[delivery(one)], now=AT))
    (made,) = await outbox.due("vectors", AT, limit=9, until=AT)
    await outbox.delivered(made, [], AT)
    assert await deliveries.again([one.id]) == 1
    (again,) = await waiting(outbox)
    assert (again.item_id, again.backend, again.operation) == (one.id, "vectors", "put")
    assert await deliveries.again([one.id]) == 0
    assert [each.id for each in await waiting(outbox)] == [again.id]


async def test_an_item_that_was_never_enqueued_is_enqueued(database: Database) -> None:
    await database.write(partial(put_item_blocking, item=item(body="payroll")))
    assert await SqliteVectorDeliveries(database, lambda: AT).again(["epi_1"]) == 1
    assert len(await waiting(SqliteOutboxStore(database))) == 1


async def test_what_was_forgotten_meanwhile_is_not_delivered(database: Database) -> None:
    await database.write(partial(put_item_blocking, item=item(body="payroll")))
    await database.write(partial(delete_item_blocking, item_id="epi_1"))
    assert await SqliteVectorDeliveries(database, lambda: AT).again(["epi_1", "epi_2"]) == 0
    assert await waiting(SqliteOutboxStore(database)) == []


async def test_what_was_given_up_is_not_taken_up_by_a_search(database: Database) -> None:
    one = item(body="payroll")
    outbox = SqliteOutboxStore(database)
    await database.write(partial(put_item_blocking, item=one))
    await database.write(partial(enqueue_blocking, deliveries=[delivery(one)], now=AT))
    (taken,) = await outbox.due("vectors", AT, limit=9, until=AT)
    await outbox.failed(taken, "It is refused.", AT, due_at=None)
    assert await SqliteVectorDeliveries(database, lambda: AT).again([one.id]) == 0
    assert await waiting(outbox) == []
