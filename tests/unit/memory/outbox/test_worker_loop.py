"""The delivery loop: sleeping, waking, restarts, and tasks that take long at the backend."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from memory.errors import BackendUnavailable, StoreUnavailable
from memory.items.item import Item
from memory.outbox.backend import BackendHealth
from memory.outbox.delivery import Delivery, Link
from tests.support.engine_talk import until
from tests.unit.memory.outbox.open_outbox import (
    AT,
    LIMITS,
    OPEN_S,
    Recorder,
    World,
    item,
    new,
    running,
    unavailable,
    world,
)

YEAR_S = 365 * 86_400


async def test_the_loop_sleeps_until_it_is_woken_and_then_delivers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path) as here:
        looked = anyio.Event()
        real = here.store.next_due_at

        async def next_due_at(backend: str) -> datetime | None:
            found = await real(backend)
            looked.set()  # the last thing it waits for before it sleeps
            return found

        monkeypatch.setattr(here.store, "next_due_at", next_due_at)
        async with running(here):
            await looked.wait()
            await anyio.wait_all_tasks_blocked()
            await here.put("epi_1")
            here.delivering.wake()
            await here.backend.went.wait()
            assert here.backend.checks == 1, "it was looked at once, at the start"


async def test_what_another_process_enqueues_is_delivered_without_a_wake(tmp_path: Path) -> None:
    async with world(tmp_path, limits=replace(LIMITS, look_s=0.01)) as here, running(here):
        await anyio.wait_all_tasks_blocked()
        await here.put("epi_1")
        await here.backend.went.wait()


async def test_a_slow_backend_does_not_hold_up_another(tmp_path: Path) -> None:
    async with world(tmp_path, "epi_1") as here:
        here.backend.meanwhile = anyio.sleep_forever
        quick = Recorder(name="vectors")
        await here.put("epi_1", backend="vectors")
        async with running(here, here.loop(quick)):
            await quick.went.wait()


async def test_stopped_in_the_middle_it_is_delivered_again_under_the_same_key(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, "epi_1") as here:
        here.backend.meanwhile = anyio.sleep_forever
        async with running(here):
            await here.backend.went.wait()
        here.backend.meanwhile = anyio.lowlevel.checkpoint
        assert await here.delivering.drain() == 0, "it is leased"
        here.pass_s(LIMITS.lease_s)
        assert await here.delivering.drain() == 1
        assert [call[3] for call in here.backend.calls] == ["memu:put:epi_1:1"] * 2
        (one,) = await here.status("delivered")
        assert one.attempts == 1


async def test_the_loop_that_begins_again_makes_what_it_had_leased(tmp_path: Path) -> None:
    """After a defect ended it, or another server had its work meanwhile and died."""
    async with world(tmp_path, "epi_1") as here:
        here.backend.meanwhile = anyio.sleep_forever
        async with running(here):
            await here.backend.went.wait()
        here.backend.meanwhile = anyio.lowlevel.checkpoint
        async with running(here):
            await until(lambda: [made[1] for made in here.results] == ["delivered"])


async def test_an_outbox_that_cannot_be_used_does_not_end_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, "epi_1") as here:
        tried = anyio.Event()

        async def broken(*_: object, **__: object) -> Sequence[Delivery]:
            tried.set()
            await anyio.lowlevel.checkpoint()
            raise StoreUnavailable("The disk is full.")

        with monkeypatch.context() as patch:
            patch.setattr(here.store, "due", broken)
            async with running(here):
                await tried.wait()
                patch.undo()
                here.delivering.wake()
                await here.backend.went.wait()


async def test_a_clock_that_was_ahead_and_is_set_back_keeps_no_delivery_waiting(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, limits=replace(LIMITS, look_s=0.01)) as here:
        here.pass_s(YEAR_S)
        await here.put("epi_1")
        here.backend.answer = unavailable
        async with running(here):
            await until(lambda: len(here.results) == 1)
            await here.put("epi_2")
            here.backend.answer = lambda _: None
            here.pass_s(-YEAR_S)
            await until(lambda: [made[1] for made in here.results[1:]] == ["delivered"] * 2)


async def test_a_start_ends_the_waits_of_a_clock_that_was_ahead(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        here.pass_s(YEAR_S)
        await here.put("epi_1")
        here.backend.answer = unavailable
        assert await here.delivering.drain() == 1
        here.pass_s(-YEAR_S)
        here.backend.answer = lambda _: None
        here.backend.went = anyio.Event()
        here.start_again()
        async with running(here):
            await here.backend.went.wait()


async def test_an_open_breaker_lets_the_loop_sleep_until_it_is_half_open(tmp_path: Path) -> None:
    async with world(tmp_path, *"abc") as here:
        here.backend.answer = unavailable
        await here.delivering.drain()
        assert await here.delivering._pause_s() == OPEN_S  # noqa: SLF001  else it would spin
        await here.put("d")
        assert await here.delivering._pause_s() == OPEN_S  # noqa: SLF001


async def test_what_was_made_is_noted_although_the_server_stops(tmp_path: Path) -> None:
    async with world(tmp_path, "epi_1") as here:
        with anyio.CancelScope() as scope:

            async def stop() -> None:
                await anyio.lowlevel.checkpoint()
                scope.cancel()

            here.backend.meanwhile = stop
            await here.delivering.drain()
        assert len(await here.status("delivered")) == 1
        assert await here.store.links_of("epi_1")


async def test_a_cancelled_probe_lets_another_one_probe(tmp_path: Path) -> None:
    async with world(tmp_path, *"abc") as here:
        here.backend.answer = unavailable
        await here.delivering.drain()
        here.pass_s(OPEN_S)
        here.backend.meanwhile = anyio.sleep_forever
        with anyio.move_on_after(0.05):
            await here.delivering.drain()
        here.backend.meanwhile, here.backend.answer = anyio.lowlevel.checkpoint, lambda _: None
        here.pass_s(LIMITS.lease_s)
        assert await here.delivering.drain() == 3


async def test_what_was_leased_by_a_process_that_died_is_made_at_once(tmp_path: Path) -> None:
    async with world(tmp_path, "epi_1") as here:
        until = here.now.replace(hour=here.now.hour + 1)
        assert len(await here.store.due("memu", AT, limit=LIMITS.batch, until=until)) == 1
        assert await here.delivering.drain() == 0, "its lease runs on"
        async with running(here):
            await here.backend.went.wait()
        assert [call[1] for call in here.backend.calls] == ["epi_1"]


@pytest.mark.parametrize("state", ["ok", "rebuilding", "failing"])
async def test_a_backend_that_does_not_answer_at_the_start_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, state: str
) -> None:
    async with world(tmp_path) as here:
        here.backend.health = BackendHealth(name="memu", state=state, detail="It is away.")
        await here.put("epi_1")
        with caplog.at_level(logging.WARNING):
            async with running(here):
                await here.backend.went.wait()
        assert here.backend.checks == 1
        told = [record for record in caplog.records if record.message == "backend_not_ready"]
        reasons = [(vars(entry)["backend"], vars(entry)["reason"]) for entry in told]
        assert reasons == ([("memu", "It is away.")] if state == "failing" else [])


NAME = "memu"


def link(kind: str, remote_id: str, item_id: str = "epi_en") -> Link:
    return Link(item_id=item_id, backend=NAME, remote_kind=kind, remote_id=remote_id)


@dataclass
class Tasks(Recorder):
    """A backend that begins a task a call, and notes what it was told of before."""

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


async def kinds(here: World) -> list[str]:
    return [entry.remote_kind for entry in await here.store.links_of("epi_en")]


async def stop_while_waiting(here: World) -> None:
    """Deliver, and stop when the task is waited for."""
    here.backend.waiting = anyio.sleep_forever
    async with anyio.create_task_group() as group:
        group.start_soon(here.delivering.drain)
        await anyio.wait_all_tasks_blocked()
        while not await kinds(here):
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    here.backend.waiting = anyio.lowlevel.checkpoint


async def test_what_was_begun_is_on_the_disk_before_it_is_waited_for(tmp_path: Path) -> None:
    async with world(tmp_path, "epi_en", backend=Tasks()) as here:
        seen: list[str] = []

        async def look() -> None:
            seen.extend(await kinds(here))

        here.backend.waiting = look
        assert await here.delivering.drain() == 1
        assert seen == ["for", "task"]
        assert await kinds(here) == ["task"]


async def test_after_a_stop_it_is_told_what_was_begun_and_begins_nothing_anew(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, "epi_en", backend=Tasks()) as here:
        await stop_while_waiting(here)
        (waiting,) = await here.store.page("ann", "pending", limit=10)
    async with world(tmp_path, backend=Tasks()) as again:
        again.items["epi_en"] = item("epi_en")
        again.pass_s(3600)
        assert await again.delivering.drain() == 1
        known = [link("for", str(waiting.id)), link("task", "task-1")]
        assert [(what, list(links)) for what, links in again.backend.told] == [("begin", known)]
        assert again.backend.begun == 0
        assert await kinds(again) == ["task"]


async def test_a_task_that_is_not_done_in_time_is_gone_on_with(tmp_path: Path) -> None:
    async with world(tmp_path, "epi_en", backend=Tasks()) as here:

        async def slow() -> None:
            await anyio.lowlevel.checkpoint()
            raise BackendUnavailable("It is still at it.")

        here.backend.waiting = slow
        await here.delivering.drain()
        here.backend.waiting = anyio.lowlevel.checkpoint
        here.pass_s(3600)
        await here.delivering.drain()
        assert here.backend.begun == 1
        assert len(await here.store.page("ann", "delivered", limit=10)) == 1


async def test_what_could_not_be_noted_is_not_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, "epi_en", backend=Tasks()) as here:

        async def full(delivery: Delivery, links: Sequence[Link]) -> None:
            del delivery, links
            await anyio.lowlevel.checkpoint()
            raise StoreUnavailable("The disk is full.")

        with monkeypatch.context() as patch:
            patch.setattr(here.store, "begun", full)
            with pytest.raises(StoreUnavailable):
                await here.delivering.drain()
        here.pass_s(3600)
        await here.delivering.drain()
        assert here.backend.begun == 1
        assert await kinds(here) == ["task"]


async def test_who_forgets_is_told_what_was_begun(tmp_path: Path) -> None:
    async with world(tmp_path, "epi_en", backend=Tasks()) as here:
        await stop_while_waiting(here)
        here.start_again()
        here.pass_s(3600)
        await here.forget("epi_en")
        await here.delivering.drain()
        (told,) = [links for what, links in here.backend.told if what == "forget"]
        assert [entry.remote_kind for entry in told] == ["for", "task"]
        assert await kinds(here) == []


async def test_what_is_put_again_after_a_forget_knows_nothing_of_before(tmp_path: Path) -> None:
    async with world(tmp_path, "epi_en", backend=Tasks()) as here:
        await here.delivering.drain()
        await here.enqueue([new("forget", "epi_en", 2)])
        await here.delivering.drain()
        told = [(what, len(links)) for what, links in here.backend.told]
        assert told == [("begin", 0), ("forget", 1), ("begin", 0)]
        assert await kinds(here) == ["task"]


async def test_links_of_other_backends_are_not_told(tmp_path: Path) -> None:
    async with world(tmp_path, backend=Tasks()) as here:
        other = Link(item_id="epi_en", backend="vectors", remote_kind="for", remote_id="1")
        await here.enqueue([new("put", "epi_en", 1, "vectors")])
        (one,) = await here.store.due("vectors", AT, limit=1, until=AT)
        await here.store.delivered(one, [other], AT)
        await here.put("epi_en")
        await here.delivering.drain()
        assert [(what, list(links)) for what, links in here.backend.told] == [("begin", [])]
        assert other in await here.store.links_of("epi_en")
