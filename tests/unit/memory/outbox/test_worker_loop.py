"""The loop that delivers: it sleeps, wakes, waits for no other, and is stopped without a loss."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from memory.errors import StoreUnavailable
from memory.outbox.delivery import Delivery
from tests.unit.memory.outbox.open_outbox import (
    LIMITS,
    OPEN_S,
    Recorder,
    unavailable,
    world,
)


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
    async with world(tmp_path, limits=limits) as here, anyio.create_task_group() as group:
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
