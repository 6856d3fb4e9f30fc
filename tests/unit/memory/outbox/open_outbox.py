"""An outbox with items, a clock, a backend that notes what it is asked, and the loop between them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from memory.errors import BackendUnavailable
from memory.items.item import Item
from memory.outbox.backend import Backend, BackendHealth
from memory.outbox.delivery import Delivery, Link, NewDelivery
from memory.outbox.loop import Backoff, DeliveryLimits, DeliveryResult
from memory.outbox.store import SqlOutboxStore, enqueue_blocking
from memory.outbox.worker import DeliveryWorker
from memory.remote.breaker import Breaker, BreakerLimits, BreakerState
from memory.stores.sqlite.database import Database
from tests.support.episodes import open_memory
from tests.support.recall import make_item

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
WAIT_S = 20
OPEN_S = 60
LIMITS = DeliveryLimits(
    call_s=WAIT_S,
    lease_s=180,
    look_s=3600,
    batch=4,
    backoff=Backoff(first_s=10, most_s=100, least_s=1, max_attempts=3),
)
Failure = Exception | None


def item(item_id: str, revision: int = 1) -> Item:
    return make_item(item_id, f"{item_id} 第{revision}版", revision=revision)


@dataclass
class Recorder:
    """A backend that notes what it is asked, and does what `answer` says."""

    name: str = "memu"
    calls: list[tuple[str, str, int | None, str]] = field(default_factory=list)
    answer: Callable[[str], Failure] = lambda _: None
    meanwhile: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
    health: BackendHealth = field(default_factory=lambda: BackendHealth(name="memu", state="ok"))
    checks: int = 0
    went: anyio.Event = field(default_factory=anyio.Event)
    """Set by the first call."""

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        self.calls.append(("put", item.id, item.revision, idempotency_key))
        await self._do(item.id)
        return [Link(item_id=item.id, backend=self.name, remote_kind="file", remote_id=item.id)]

    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        self.calls.append(("forget", item_id, len(links), idempotency_key))
        await self._do(item_id)

    async def _do(self, item_id: str) -> None:
        self.went.set()
        await self.meanwhile()
        failure = self.answer(item_id)
        if failure is not None:
            raise failure

    async def check(self) -> BackendHealth:
        await anyio.lowlevel.checkpoint()
        self.checks += 1
        return self.health

    async def close(self) -> None:
        """Nothing to close."""


@dataclass
class World:
    """An outbox, items, a clock, and the loop under test."""

    database: Database
    backend: Any = field(default_factory=Recorder)
    items: dict[str, Item] = field(default_factory=dict)
    now: datetime = AT
    limits: DeliveryLimits = LIMITS
    results: list[tuple[str, DeliveryResult, str | None]] = field(default_factory=list)
    changes: list[BreakerState] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = SqlOutboxStore(self.database)
        self.start_again()

    def start_again(self) -> None:
        """Forget all that is not on the disk."""
        self.breaker = Breaker(
            BreakerLimits(max_failures=3, open_s=OPEN_S), on_change=self.changes.append
        )
        self.delivering = self.loop(self.backend)

    def loop(self, backend: Backend) -> DeliveryWorker:
        return DeliveryWorker(
            backend,
            self.store,
            self.current,
            self.breaker,
            now=lambda: self.now,
            draw=lambda: 0.5,
            limits=self.limits,
            on_result=self._note,
        )

    def _note(self, delivery: Delivery, result: DeliveryResult, error: str | None) -> None:
        self.results.append((delivery.item_id, result, error))

    async def current(self, item_id: str) -> Item | None:
        await anyio.lowlevel.checkpoint()
        return self.items.get(item_id)

    async def put(self, *item_ids: str, revision: int = 1, backend: str = "memu") -> None:
        self.items |= {item_id: item(item_id, revision) for item_id in item_ids}
        await self.enqueue([new("put", item_id, revision, backend) for item_id in item_ids])

    async def forget(self, item_id: str, revision: int = 2) -> None:
        self.items.pop(item_id, None)
        await self.enqueue([new("forget", item_id, revision)])

    async def enqueue(self, deliveries: Sequence[NewDelivery]) -> None:
        await self.database.write(partial(enqueue_blocking, deliveries=deliveries, now=self.now))

    async def status(self, status: str) -> list[Delivery]:
        page = await self.store.page("ann", None, limit=100)
        return [entry for entry in page if entry.status == status]

    def pass_s(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def new(operation: str, item_id: str, revision: int, backend: str = "memu") -> NewDelivery:
    return NewDelivery(
        backend=backend,
        operation="put" if operation == "put" else "forget",
        item_id=item_id,
        owner_id="ann",
        revision=revision,
    )


@asynccontextmanager
async def world(directory: Path, *item_ids: str, **more: Any) -> AsyncIterator[World]:
    """Open a world in which these items wait to be delivered."""
    with anyio.fail_after(WAIT_S * 2):
        async with open_memory(directory) as database:
            here = World(database, **more)
            if item_ids:
                await here.put(*item_ids)
            yield here


@asynccontextmanager
async def running(here: World, *others: DeliveryWorker) -> AsyncIterator[None]:
    """Run the loop, and others beside it, while the block runs."""
    async with anyio.create_task_group() as tasks:
        for loop in (here.delivering, *others):
            tasks.start_soon(loop.run)
        yield
        tasks.cancel_scope.cancel()


def unavailable(_: str) -> Failure:
    return BackendUnavailable("It is away.")
