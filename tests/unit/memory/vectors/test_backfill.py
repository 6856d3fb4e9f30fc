"""Holes of the vector index: what is looked up, what is delivered once more, and what is left alone."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest

from memory.errors import StoreUnavailable
from memory.outbox.delivery import NewDelivery
from memory.outbox.store import SqlOutboxStore, enqueue_blocking
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import delete_item_blocking, put_item_blocking
from memory.vectors import backfill
from memory.vectors.backfill import VectorBackfill
from memory.vectors.state import deliver_vectors_again
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
        tasks.start_soon(one.run)
        yield
        tasks.cancel_scope.cancel()


async def test_what_the_index_lacks_is_delivered_again_and_nothing_else_also_when_noted_later() -> (
    None
):
    again, woken = Again(), list[None]()
    one = VectorBackfill(Index("b", "d").missing, again.again, wake=lambda: woken.append(None))
    async with running(one):
        for names in ("abc", "d"):
            again.made = anyio.Event()
            one.note([*names])
            with anyio.fail_after(30):
                await again.made.wait()
    assert again.item_ids == ["b", "d"]
    assert woken


async def test_an_item_that_waits_is_looked_up_once_many_in_batches_and_no_more_than_a_bound() -> (
    None
):
    index, ids = Index(), [f"i{n}" for n in range(3 * backfill.MAX_WAITING)]
    one = VectorBackfill(index.missing, Again().again)
    one.note(ids[:120])
    one.note(ids)
    for _ in range(60):
        await one.look_up()
    assert [len(some) for some in index.asked[:3]] == [50] * 3
    looked_up = [each for some in index.asked for each in some]
    assert looked_up == ids[: backfill.MAX_WAITING]


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


@pytest.mark.parametrize(
    ("state", "is_again"),
    [("delivered", True), ("never enqueued", True), ("forgotten", False), ("given up", False)],
)
async def test_what_is_there_is_delivered_again_and_only_once(
    database: Database, state: str, *, is_again: bool
) -> None:
    one, outbox = item(body="payroll"), SqlOutboxStore(database)
    await database.write(partial(put_item_blocking, item=one))
    if state == "forgotten":
        await database.write(partial(delete_item_blocking, item_id=one.id))
    if state in {"delivered", "given up"}:
        new = NewDelivery(
            backend="vectors", operation="put", item_id=one.id, owner_id="ann", revision=1
        )
        await database.write(partial(enqueue_blocking, deliveries=[new], now=AT))
        (made,) = await outbox.due("vectors", AT, limit=9, until=AT)
        if state == "delivered":
            await outbox.delivered(made, [], AT)
        else:
            await outbox.failed(made, "It is refused.", AT, due_at=None)
    again = partial(deliver_vectors_again, database, lambda: AT, [one.id, "epi_2"])
    assert [await again() for _ in range(2)] == [is_again, 0]
    waiting = await outbox.page("ann", "pending", limit=9)
    assert [(again.item_id, again.backend, again.operation) for again in waiting] == (
        [(one.id, "vectors", "put")] if is_again else []
    )
