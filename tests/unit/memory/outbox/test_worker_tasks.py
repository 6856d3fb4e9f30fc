"""Deliveries to a backend that works on by itself: what it has begun is known before it is waited for."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from memory.errors import StoreUnavailable
from memory.items import Item
from memory.outbox.backend import BackendHealth, BackendUnavailable
from memory.outbox.backoff import Backoff
from memory.outbox.breaker import Breaker, BreakerLimits
from memory.outbox.delivery import Delivery, Link, NewDelivery, Operation
from memory.outbox.worker import DeliveryLimits, DeliveryWorker
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.outbox import SqliteOutboxStore, enqueue_blocking, withdraw_blocking
from tests.conformance.suites.backends import item
from tests.support.episodes import open_memory

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
NAME = "tasks"
WAIT_S = 30
LIMITS = DeliveryLimits(
    call_s=WAIT_S, backoff=Backoff(first_s=10, most_s=100, least_s=1, max_attempts=9)
)


def link(kind: str, remote_id: str, item_id: str = "epi_en") -> Link:
    return Link(item_id=item_id, backend=NAME, remote_kind=kind, remote_id=remote_id)


@dataclass
class Tasks:
    """A backend that begins a task a call, and notes what it was told of before."""

    name: str = NAME
    told: list[tuple[str, Sequence[Link]]] = field(default_factory=list)
    begun: int = 0
    waiting: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        raise AssertionError("it is asked to begin, so that it can be noted")

    async def begin(self, item: Item, links: Sequence[Link], delivery_id: int) -> Sequence[Link]:
        await anyio.lowlevel.checkpoint()
        self.told.append(("begin", links))
        if any(entry.remote_kind == "for" for entry in links):
            return links
        self.begun += 1
        return [link("task", f"task-{self.begun}", item.id), link("for", str(delivery_id), item.id)]

    async def finish(self, item: Item, links: Sequence[Link]) -> Sequence[Link]:
        await self.waiting()
        return [link for link in links if link.remote_kind == "task"]

    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        await anyio.lowlevel.checkpoint()
        self.told.append(("forget", links))

    async def check(self) -> BackendHealth:
        await anyio.lowlevel.checkpoint()
        return BackendHealth(name=self.name, state="ok")

    async def close(self) -> None:
        """Nothing to close."""


@dataclass
class World:
    """An outbox, one item, a clock, and the loop under test."""

    database: Database
    backend: Tasks = field(default_factory=Tasks)
    current_item: Item | None = field(default_factory=item)
    now: datetime = AT

    def __post_init__(self) -> None:
        self.store = SqliteOutboxStore(self.database)
        self.start_again()

    def start_again(self) -> None:
        """Forget all that is not on the disk."""
        self.delivering = DeliveryWorker(
            self.backend,
            self.store,
            self,
            Breaker(BreakerLimits()),
            now=lambda: self.now,
            draw=lambda: 0.5,
            limits=LIMITS,
        )
        self.now += timedelta(hours=1)

    async def current(self, item_id: str) -> Item | None:
        del item_id
        await anyio.lowlevel.checkpoint()
        return self.current_item

    async def enqueue(self, operation: Operation, revision: int = 1) -> None:
        new = NewDelivery(
            backend=NAME,
            operation=operation,
            item_id="epi_en",
            owner_id="ann",
            revision=revision,
        )

        def work(connection: sqlite3.Connection) -> None:
            if operation == "forget":
                withdraw_blocking(connection, "epi_en")
            enqueue_blocking(connection, [new], self.now)

        await self.database.write(work)

    async def kinds(self) -> list[str]:
        return [entry.remote_kind for entry in await self.store.links_of("epi_en")]


@asynccontextmanager
async def world(directory: Path) -> AsyncIterator[World]:
    with anyio.fail_after(WAIT_S):
        async with open_memory(directory) as database:
            yield World(database)


async def stop_while_waiting(here: World) -> None:
    """Deliver, and stop when the task is waited for."""
    here.backend.waiting = anyio.sleep_forever
    async with anyio.create_task_group() as group:
        group.start_soon(here.delivering.drain)
        await anyio.wait_all_tasks_blocked()
        while not await here.kinds():
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    here.backend.waiting = anyio.lowlevel.checkpoint


async def test_what_was_begun_is_on_the_disk_before_it_is_waited_for(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.enqueue("put")
        seen: list[str] = []

        async def look() -> None:
            seen.extend(await here.kinds())

        here.backend.waiting = look
        assert await here.delivering.drain() == 1
        assert seen == ["for", "task"]
        assert await here.kinds() == ["task"]


async def test_after_a_stop_it_is_told_what_was_begun_and_begins_nothing_anew(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        await here.enqueue("put")
        await stop_while_waiting(here)
        (waiting,) = await here.store.page("ann", "pending", limit=10)
    async with world(tmp_path) as again:
        again.start_again()
        assert await again.delivering.drain() == 1
        known = [link("for", str(waiting.id)), link("task", "task-1")]
        assert [(what, list(links)) for what, links in again.backend.told] == [("begin", known)]
        assert again.backend.begun == 0
        assert await again.kinds() == ["task"]


async def test_a_task_that_is_not_done_in_time_is_gone_on_with(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.enqueue("put")

        async def slow() -> None:
            await anyio.lowlevel.checkpoint()
            raise BackendUnavailable("It is still at it.")

        here.backend.waiting = slow
        await here.delivering.drain()
        here.backend.waiting = anyio.lowlevel.checkpoint
        here.now += timedelta(hours=1)
        await here.delivering.drain()
        assert here.backend.begun == 1
        assert len(await here.store.page("ann", "delivered", limit=10)) == 1


async def test_what_could_not_be_noted_is_not_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path) as here:
        await here.enqueue("put")

        async def full(delivery: Delivery, links: Sequence[Link]) -> None:
            del delivery, links
            await anyio.lowlevel.checkpoint()
            raise StoreUnavailable("The disk is full.")

        with monkeypatch.context() as patch:
            patch.setattr(here.store, "begun", full)
            with pytest.raises(StoreUnavailable):
                await here.delivering.drain()
        here.now += timedelta(hours=1)
        await here.delivering.drain()
        assert here.backend.begun == 1
        assert await here.kinds() == ["task"]


async def test_who_forgets_is_told_what_was_begun(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.enqueue("put")
        await stop_while_waiting(here)
        here.current_item = None
        here.start_again()
        await here.enqueue("forget", 2)
        await here.delivering.drain()
        (told,) = [links for what, links in here.backend.told if what == "forget"]
        assert [entry.remote_kind for entry in told] == ["for", "task"]
        assert await here.kinds() == []


async def test_what_is_put_again_after_a_forget_knows_nothing_of_before(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.enqueue("put")
        await here.delivering.drain()
        await here.enqueue("forget", 2)
        await here.delivering.drain()
        assert [(what, len(links)) for what, links in here.backend.told] == [
            ("begin", 0),
            ("forget", 1),
            ("begin", 0),
        ]
        assert await here.kinds() == ["task"]


async def test_links_of_other_backends_are_not_told(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        other = Link(item_id="epi_en", backend="vectors", remote_kind="for", remote_id="1")
        new = NewDelivery(
            backend="vectors", operation="put", item_id="epi_en", owner_id="ann", revision=1
        )
        await here.database.write(partial(enqueue_blocking, deliveries=[new], now=AT))
        (one,) = await here.store.due("vectors", AT, limit=1, until=AT)
        await here.store.delivered(one, [other], AT)
        await here.enqueue("put")
        await here.delivering.drain()
        assert [(what, list(links)) for what, links in here.backend.told] == [("begin", [])]
        assert other in await here.store.links_of("epi_en")
