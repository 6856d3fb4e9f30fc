"""Deliveries out of the outbox: made, tried again, given up, held back by the breaker."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from memory.errors import StoreUnavailable
from memory.items import Item
from memory.outbox.backend import BackendHealth, BackendUnavailable, DeliveryRefused
from memory.outbox.backoff import Backoff
from memory.outbox.breaker import Breaker, BreakerLimits, BreakerState
from memory.outbox.delivering import Delivering, DeliveryLimits, DeliveryResult
from memory.outbox.delivery import Delivery, Link, NewDelivery
from memory.scope import Scope
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.outbox import SqliteOutboxStore, enqueue_blocking, withdraw_blocking
from tests.support.episodes import open_memory

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
    return Item(
        id=item_id,
        kind="episode",
        scope=Scope(owner_id="ann"),
        title=item_id,
        summary="",
        body=f"{item_id} 第{revision}版",
        source="",
        occurred_at=AT,
        updated_at=AT,
        revision=revision,
    )


@dataclass
class Recorder:
    """A backend that notes what it is asked, and does what `answer` says."""

    name: str = "memu"
    calls: list[tuple[str, str, int | None, str]] = field(default_factory=list)
    answer: Callable[[str], Failure] = lambda _: None
    meanwhile: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
    health: BackendHealth = field(default_factory=lambda: BackendHealth(name="memu", state="ok"))
    checks: int = 0

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        self.calls.append(("put", item.id, item.revision, idempotency_key))
        await self._do(item.id)
        return [Link(item_id=item.id, backend=self.name, remote_kind="file", remote_id=item.id)]

    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        self.calls.append(("forget", item_id, len(links), idempotency_key))
        await self._do(item_id)

    async def _do(self, item_id: str) -> None:
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
    backend: Recorder
    items: dict[str, Item] = field(default_factory=dict)
    now: datetime = AT
    limits: DeliveryLimits = LIMITS
    results: list[tuple[str, DeliveryResult, str | None]] = field(default_factory=list)
    changes: list[BreakerState] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = SqliteOutboxStore(self.database)
        self.breaker = Breaker(
            BreakerLimits(max_failures=3, open_s=OPEN_S), on_change=self.changes.append
        )
        self.delivering = self.loop(self.backend)

    def loop(self, backend: Recorder) -> Delivering:
        return Delivering(
            backend,
            self.store,
            self,
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
        self.items |= {one: item(one, revision) for one in item_ids}
        await self.enqueue([new("put", one, revision, backend) for one in item_ids])

    async def forget(self, item_id: str, revision: int = 2) -> None:
        self.items.pop(item_id, None)

        def work(connection: sqlite3.Connection) -> None:
            withdraw_blocking(connection, item_id)
            enqueue_blocking(connection, [new("forget", item_id, revision)], self.now)

        await self.database.write(work)

    async def enqueue(self, deliveries: Sequence[NewDelivery]) -> None:
        await self.database.write(partial(enqueue_blocking, deliveries=deliveries, now=self.now))

    async def status(self, status: str) -> list[Delivery]:
        page = await self.store.page("ann", None, limit=100)
        return [one for one in page if one.status == status]

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
async def world(directory: Path, limits: DeliveryLimits = LIMITS) -> AsyncIterator[World]:
    with anyio.fail_after(WAIT_S * 2):
        async with open_memory(directory) as database:
            yield World(database, Recorder(), limits=limits)


def unavailable(_: str) -> Failure:
    return BackendUnavailable("It is away.")


async def test_what_is_due_is_delivered_oldest_first_and_noted_with_its_links(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        await here.put(*(f"epi_{n}" for n in range(10)))
        assert await here.delivering.drain() == 10
        assert [call[1] for call in here.backend.calls] == [f"epi_{n}" for n in range(10)]
        assert here.results == [(f"epi_{n}", "delivered", None) for n in range(10)]
        assert [one.remote_id for one in await here.store.links_of("epi_3")] == ["epi_3"]
        assert await here.delivering.drain() == 0


async def test_an_item_that_is_gone_is_nothing_to_do_and_its_links_stay(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.put("epi_1")
        await here.delivering.drain()
        await here.put("epi_1", revision=2)
        here.items.clear()
        await here.delivering.drain()
        assert len(here.backend.calls) == 1
        assert len(await here.status("delivered")) == 2
        assert await here.store.links_of("epi_1"), "what is there must still be forgotten"


async def test_the_newest_state_of_an_item_is_delivered(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.put("epi_1")
        here.items["epi_1"] = item("epi_1", 5)
        await here.delivering.drain()
        assert here.backend.calls == [("put", "epi_1", 5, "memu:put:epi_1:1")]


async def test_a_failure_waits_longer_each_time_and_keeps_its_key_until_it_is_dead(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        here.backend.answer = unavailable
        await here.put("epi_1")
        for wait_s in (5, 10):  # half of the bounds 10 and 20
            assert await here.delivering.drain() == 1
            here.pass_s(wait_s - 0.001)
            assert await here.delivering.drain() == 0
            here.pass_s(0.001)
        assert await here.delivering.drain() == 1
        (dead,) = await here.status("dead")
        assert (dead.attempts, dead.last_error) == (3, "It is away.")
        assert [one[1] for one in here.results] == ["failed", "failed", "dead"]
        assert {call[3] for call in here.backend.calls} == {"memu:put:epi_1:1"}


async def test_a_refused_one_is_dead_at_once_and_does_not_count_against_the_backend(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        here.backend.answer = lambda _: DeliveryRefused("太长了。")
        await here.put(*"abcde")
        assert await here.delivering.drain() == 5
        assert {one.last_error for one in await here.status("dead")} == {"太长了。"}
        assert here.changes == []


async def test_a_backend_that_breaks_otherwise_is_tried_again_and_its_words_are_not_shown(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        here.backend.answer = lambda _: KeyError("/secret/path")
        await here.put("epi_1")
        await here.delivering.drain()
        (one,) = await here.status("pending")
        assert one.last_error is not None
        assert "secret" not in one.last_error


async def test_a_backend_that_does_not_answer_is_cut_off(tmp_path: Path) -> None:
    async with world(tmp_path, replace(LIMITS, call_s=0.01)) as here:
        here.backend.meanwhile = anyio.sleep_forever
        await here.put("epi_1")
        await here.delivering.drain()
        assert here.results == [("epi_1", "failed", "It did not answer in time.")]


async def test_an_open_breaker_costs_no_attempt_and_half_open_one_probe_goes(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        here.backend.answer = unavailable
        await here.put(*"abcdefgh")
        assert await here.delivering.drain() == 3
        assert here.changes == ["open"]
        waiting = await here.status("pending")
        assert sorted(one.attempts for one in waiting) == [0] * 5 + [1] * 3
        here.pass_s(OPEN_S - 1)
        assert await here.delivering.drain() == 0
        here.pass_s(1)
        assert await here.delivering.drain() == 1
        assert here.changes == ["open", "half_open", "open"]
        here.backend.answer = lambda _: None
        here.pass_s(OPEN_S)
        assert await here.delivering.drain() == 8
        assert here.changes == ["open", "half_open", "open", "half_open", "closed"]
        assert len(await here.status("delivered")) == 8


async def test_retrying_a_dead_one_delivers_it(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        here.backend.answer = lambda _: DeliveryRefused("no")
        await here.put("epi_1")
        await here.delivering.drain()
        here.backend.answer = lambda _: None
        (dead,) = await here.status("dead")
        assert await here.store.retry(dead.id, "ann", here.now) is not None
        assert await here.delivering.drain() == 1
        assert [one.last_error for one in await here.status("delivered")] == [None]


async def test_forgetting_hands_over_the_links_and_leaves_none(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.put("epi_1")
        await here.delivering.drain()
        await here.forget("epi_1")
        await here.delivering.drain()
        assert here.backend.calls[-1] == ("forget", "epi_1", 1, "memu:forget:epi_1:2")
        assert await here.store.links_of("epi_1") == []


async def test_what_was_forgotten_while_it_went_out_is_forgotten_there_too(tmp_path: Path) -> None:
    async with world(tmp_path) as here:

        async def forget() -> None:
            here.backend.meanwhile = anyio.lowlevel.checkpoint
            await here.forget("epi_1")

        here.backend.meanwhile = forget
        await here.put("epi_1")
        await here.delivering.drain()
        assert [call[0] for call in here.backend.calls] == ["put", "forget"]
        assert here.backend.calls[1][2] == 1, "with what was made of it"
        assert await here.store.links_of("epi_1") == []


async def test_a_late_forget_does_not_take_what_was_made_again_since(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        here.backend.answer = unavailable
        await here.forget("memory/ops.md", 2)
        await here.delivering.drain()
        here.backend.answer = lambda _: None
        await here.put("memory/ops.md", revision=3)
        await here.delivering.drain()
        here.pass_s(1000)
        await here.delivering.drain()
        assert [call[0] for call in here.backend.calls] == ["forget", "put", "forget", "put"]
        assert await here.store.links_of("memory/ops.md")
        assert await here.status("pending") == []


async def test_a_refused_forget_is_dead_with_what_is_left(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        here.backend.answer = lambda _: DeliveryRefused("Its file is still there.")
        await here.forget("epi_1")
        await here.delivering.drain()
        assert [one.last_error for one in await here.status("dead")] == ["Its file is still there."]


async def test_the_loop_sleeps_until_it_is_woken_and_then_delivers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path) as here, anyio.create_task_group() as group:
        looked, went = anyio.Event(), anyio.Event()
        real = here.store.next_due_at

        async def next_due_at(backend: str) -> datetime | None:
            found = await real(backend)
            looked.set()  # the last thing it waits for before it sleeps
            return found

        async def tell() -> None:
            went.set()
            await anyio.lowlevel.checkpoint()

        monkeypatch.setattr(here.store, "next_due_at", next_due_at)
        here.backend.meanwhile = tell
        await group.start(here.delivering.run)
        await looked.wait()
        await anyio.wait_all_tasks_blocked()
        await here.put("epi_1")
        here.delivering.wake()
        await went.wait()
        assert here.backend.checks == 1, "it was looked at once, at the start"
        group.cancel_scope.cancel()


async def test_what_another_process_enqueues_is_delivered_without_a_wake(tmp_path: Path) -> None:
    limits = replace(LIMITS, look_s=0.01)
    async with world(tmp_path, limits) as here, anyio.create_task_group() as group:
        went = anyio.Event()

        async def tell() -> None:
            went.set()
            await anyio.lowlevel.checkpoint()

        here.backend.meanwhile = tell
        await group.start(here.delivering.run)
        await anyio.wait_all_tasks_blocked()
        await here.put("epi_1")
        await went.wait()
        group.cancel_scope.cancel()


async def test_an_open_breaker_lets_the_loop_sleep_until_it_is_half_open(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        here.backend.answer = unavailable
        await here.put(*"abc")
        await here.delivering.drain()
        assert await here.delivering._pause_s() == OPEN_S  # noqa: SLF001  else it would spin
        await here.put("d")
        assert await here.delivering._pause_s() == OPEN_S  # noqa: SLF001


async def test_the_loop_wakes_by_itself_when_the_next_one_is_due(tmp_path: Path) -> None:
    async with world(tmp_path) as here, anyio.create_task_group() as group:
        tries = 0
        again = anyio.Event()

        def failing_once(_: str) -> Failure:
            nonlocal tries
            tries += 1
            if tries == 1:
                return BackendUnavailable("not yet")
            again.set()
            return None

        begun = anyio.current_time()
        here.backend.answer = failing_once
        here.limits = replace(LIMITS, backoff=Backoff(first_s=0.02, least_s=0.01))
        loop = here.loop(here.backend)

        def now() -> datetime:
            return AT + timedelta(seconds=anyio.current_time() - begun)

        loop._now = now  # noqa: SLF001  this clock moves
        await here.put("epi_1")
        await group.start(loop.run)
        await again.wait()
        group.cancel_scope.cancel()


async def test_a_slow_backend_does_not_hold_up_another(tmp_path: Path) -> None:
    async with world(tmp_path) as here, anyio.create_task_group() as group:
        went = anyio.Event()

        async def tell() -> None:
            went.set()
            await anyio.lowlevel.checkpoint()

        here.backend.meanwhile = anyio.sleep_forever
        quick = Recorder(name="vectors", meanwhile=tell)
        await here.put("epi_1")
        await here.put("epi_1", backend="vectors")
        await group.start(here.delivering.run)
        await group.start(here.loop(quick).run)
        await went.wait()
        group.cancel_scope.cancel()


async def test_stopped_in_the_middle_it_is_delivered_again_under_the_same_key(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        await here.put("epi_1")
        begun = anyio.Event()

        async def hang() -> None:
            begun.set()
            await anyio.sleep_forever()

        here.backend.meanwhile = hang
        async with anyio.create_task_group() as group:
            await group.start(here.delivering.run)
            await begun.wait()
            group.cancel_scope.cancel()
        here.backend.meanwhile = anyio.lowlevel.checkpoint
        assert await here.delivering.drain() == 0, "it is leased"
        here.pass_s(LIMITS.lease_s)
        assert await here.delivering.drain() == 1
        assert [call[3] for call in here.backend.calls] == ["memu:put:epi_1:1"] * 2
        (one,) = await here.status("delivered")
        assert one.attempts == 1


async def test_what_was_made_is_noted_although_the_server_stops(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        await here.put("epi_1")
        with anyio.CancelScope() as scope:

            async def stop() -> None:
                await anyio.lowlevel.checkpoint()
                scope.cancel()

            here.backend.meanwhile = stop
            await here.delivering.drain()
        assert len(await here.status("delivered")) == 1
        assert await here.store.links_of("epi_1")


async def test_a_cancelled_probe_lets_another_one_probe(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        here.backend.answer = unavailable
        await here.put(*"abc")
        await here.delivering.drain()
        here.pass_s(OPEN_S)
        here.backend.meanwhile = anyio.sleep_forever
        with anyio.move_on_after(0.05):
            await here.delivering.drain()
        here.backend.meanwhile, here.backend.answer = anyio.lowlevel.checkpoint, lambda _: None
        here.pass_s(LIMITS.lease_s)
        assert await here.delivering.drain() == 3


async def test_an_outbox_that_cannot_be_used_does_not_end_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path) as here, anyio.create_task_group() as group:
        tried, went = anyio.Event(), anyio.Event()
        real = here.store.due

        async def broken(*_: object, **__: object) -> Sequence[Delivery]:
            tried.set()
            await anyio.lowlevel.checkpoint()
            raise StoreUnavailable("The disk is full.")

        async def tell() -> None:
            went.set()
            await anyio.lowlevel.checkpoint()

        here.backend.meanwhile = tell
        monkeypatch.setattr(here.store, "due", broken)
        await group.start(here.delivering.run)
        await tried.wait()
        monkeypatch.setattr(here.store, "due", real)
        await here.put("epi_1")
        here.delivering.wake()
        await went.wait()
        group.cancel_scope.cancel()


async def test_health_tells_of_the_backend_the_breaker_the_last_error_and_the_lag(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        health = await here.delivering.health()
        assert (health.breaker, health.last_error, health.lag_s) == ("closed", None, 0)
        here.backend.answer = unavailable
        here.backend.health = BackendHealth(name="memu", state="failing", detail="away")
        await here.put(*"abc")
        await here.delivering.drain()
        here.pass_s(30)
        health = await here.delivering.health()
        assert health.backend == here.backend.health
        assert (health.breaker, health.last_error, health.lag_s) == ("open", "It is away.", 30)
        here.backend.answer = lambda _: None
        here.pass_s(OPEN_S)
        await here.delivering.drain()
        health = await here.delivering.health()
        assert (health.breaker, health.last_error, health.lag_s) == ("closed", None, 0)
