"""Who gets which client, who is put to sleep for it, and that no process is forgotten."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.engine import warmth
from gateway.engine.pool import ClientPool, Lease, PoolLimits
from gateway.engine.protocol import ClientSpec, EngineUnavailable, SessionOrigin
from tests.support.engine_talk import ask, script, until
from tests.support.engine_watched import WatchedClient, WatchedEngine

SOON_S = 20
SPEC = ClientSpec(model="one")
OTHER = ClientSpec(model="two")
FRESH = SessionOrigin()


class Bench:
    """A pool on a watched engine."""

    def __init__(self, engine: WatchedEngine, pool: ClientPool) -> None:
        self.engine = engine
        self.pool = pool

    async def take(self, name: str, *, spec: ClientSpec = SPEC, resume: str | None = None) -> Lease:
        return await self.pool.acquire(name, spec, SessionOrigin(resume=resume))

    async def turn(self, name: str, *, spec: ClientSpec = SPEC, resume: str | None = None) -> Lease:
        """Take a turn: acquire, run, release."""
        lease = await self.take(name, spec=spec, resume=resume)
        await ask(lease.client, script({"text": name}))
        self.pool.release(name)
        return lease


@asynccontextmanager
async def opened(
    root: Path,
    *,
    max_live: int = 2,
    prewarmed: int = 0,
    idle_s: float = 1000,
    stale_grace_s: float = 1000,
    max_memory_bytes: int = 10**12,
    run: bool = True,
    engine: WatchedEngine | None = None,
) -> AsyncIterator[Bench]:
    limits = PoolLimits(
        max_live=max_live,
        prewarmed=prewarmed,
        idle_s=idle_s,
        stale_grace_s=stale_grace_s,
        max_memory_bytes=max_memory_bytes,
    )
    engine = engine or WatchedEngine(root)
    with anyio.fail_after(SOON_S):
        async with anyio.create_task_group() as tasks:
            pool = ClientPool(engine, SPEC, limits, tasks)
            if run:
                tasks.start_soon(pool.run)
            try:
                yield Bench(engine, pool)
            finally:
                for hold in (engine.hold_connect, engine.hold_close, engine.hold_abort):
                    if hold is not None:
                        hold.set()
            await pool.close()
            assert engine.live == 0
            assert pool.live_count == 0
            tasks.cancel_scope.cancel()
        assert engine.peak <= max_live + prewarmed


def watched(lease: Lease) -> WatchedClient:
    assert isinstance(lease.client, WatchedClient)
    return lease.client


async def test_the_same_conversation_keeps_its_client(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        first, second = await bench.turn("a"), await bench.turn("a")
        assert first.client is second.client
        assert (first.origin, second.origin) == ("connected", "reused")
        assert bench.pool.is_hot("a")
        assert not bench.pool.is_hot("b")


async def test_other_options_make_another_client_once_the_old_one_is_gone(tmp_path: Path) -> None:
    async with opened(tmp_path, max_live=1) as bench:
        first = await bench.turn("a")
        session = first.client.session_id
        second = await bench.turn("a", spec=OTHER, resume=session)
        assert second.client is not first.client
        assert second.origin == "woken"
        assert watched(second).spec == OTHER
        assert bench.engine.peak == 1


async def test_a_fresh_conversation_takes_the_prewarmed_and_another_is_warmed(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, prewarmed=1) as bench:
        await until(lambda: bench.pool.warm_count == 1)
        assert (await bench.turn("a")).origin == "prewarmed"
        await until(lambda: bench.pool.warm_count == 1)
        assert (await bench.turn("b")).origin == "prewarmed"
        assert bench.pool.live_count == 2


async def test_a_fresh_conversation_waits_for_the_one_that_is_on_its_way(tmp_path: Path) -> None:
    async with opened(tmp_path, prewarmed=1) as bench:
        bench.engine.hold_connect = anyio.Event()
        await until(lambda: bench.engine.connects == 1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.turn, "a")
            await anyio.wait_all_tasks_blocked()
            assert bench.engine.connects == 1
            bench.engine.hold_connect.set()
        assert bench.pool.is_hot("a")


async def test_one_of_another_make_does_not_take_the_prewarmed(tmp_path: Path) -> None:
    async with opened(tmp_path, prewarmed=1) as bench:
        await until(lambda: bench.pool.warm_count == 1)
        lease = await bench.turn("a", spec=OTHER)
        assert (lease.origin, watched(lease).spec) == ("connected", OTHER)
        assert bench.pool.warm_count == 1


async def test_a_prewarmed_one_that_died_is_passed_over(tmp_path: Path) -> None:
    async with opened(tmp_path, prewarmed=1) as bench:
        await until(lambda: bench.pool.warm_count == 1)
        (warm,) = bench.engine.living
        await warm.die()
        assert bench.pool.warm_count == 0
        lease = await bench.turn("a")
        assert lease.origin == "connected"
        assert warm.close_calls == 1
        assert lease.client.is_alive()


async def test_the_least_recently_used_sleeps_and_wakes_by_its_session(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        old = await bench.turn("a")
        session = old.client.session_id
        await bench.turn("b")
        await bench.turn("a")
        await bench.turn("c")
        assert [bench.pool.is_hot(one) for one in "abc"] == [True, False, True]
        await bench.turn("b", resume=None)
        assert not bench.pool.is_hot("a")
        woken = await bench.turn("a", resume=session)
        assert (woken.origin, woken.session_lost, woken.client_died) == ("woken", False, False)
        assert woken.client.session_id == session


async def test_the_idle_sleep_at_their_moment(tmp_path: Path) -> None:
    async with opened(tmp_path, idle_s=0.02) as bench:
        await bench.turn("a")
        lease = await bench.take("b")
        await until(lambda: bench.pool.live_count == 1)
        assert lease.client.is_alive()  # a busy one is not idle
        bench.pool.release("b")
        await until(lambda: bench.pool.live_count == 0)
        assert bench.engine.live == 0


async def test_too_much_memory_puts_the_least_recently_used_to_sleep(tmp_path: Path) -> None:
    async with opened(tmp_path, max_live=4, max_memory_bytes=100) as bench:
        for name in "abc":
            watched(await bench.turn(name)).memory_bytes = 40
        watched(await bench.take("d")).memory_bytes = 15
        await bench.pool.keep_memory_bound()
        await until(lambda: bench.pool.live_count == 3)
        assert [bench.pool.is_hot(one) for one in "abcd"] == [False, True, True, True]
        assert bench.pool.memory_bytes == 95
        await bench.pool.keep_memory_bound()
        await anyio.wait_all_tasks_blocked()
        assert bench.pool.live_count == 3


async def test_memory_that_is_being_freed_puts_nobody_else_to_sleep(tmp_path: Path) -> None:
    async with opened(tmp_path, max_live=4, max_memory_bytes=100) as bench:
        for name in "abc":
            watched(await bench.turn(name)).memory_bytes = 40
        bench.engine.hold_close = anyio.Event()
        for _ in range(3):
            await bench.pool.keep_memory_bound()
        assert [bench.pool.is_hot(one) for one in "abc"] == [False, True, True]


async def test_the_prewarmed_ones_memory_counts(tmp_path: Path) -> None:
    async with opened(tmp_path, prewarmed=1, max_memory_bytes=100) as bench:
        await until(lambda: bench.pool.warm_count == 1)
        bench.engine.living[0].memory_bytes = 30
        lease = await bench.turn("a")
        await until(lambda: bench.pool.warm_count == 1)
        bench.engine.living[-1].memory_bytes = 70
        assert watched(lease).memory_bytes == 30
        await bench.pool.keep_memory_bound()
        assert bench.pool.memory_bytes == 100
        assert bench.pool.is_hot("a")
        watched(lease).memory_bytes = 31
        await bench.pool.keep_memory_bound()
        assert not bench.pool.is_hot("a")


async def test_a_session_that_is_gone_is_told_and_begun_anew(tmp_path: Path) -> None:
    async with opened(tmp_path, prewarmed=1) as bench:
        await until(lambda: bench.pool.warm_count == 1)
        lease = await bench.turn("a", resume="nowhere")
        assert (lease.origin, lease.session_lost) == ("prewarmed", True)


async def test_a_client_that_died_between_turns_is_told_and_not_hot(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        first = await bench.turn("a")
        session = first.client.session_id
        await watched(first).die()
        assert not bench.pool.is_hot("a")
        lease = await bench.turn("a", resume=session)
        assert (lease.origin, lease.client_died) == ("woken", True)


async def test_a_client_that_died_in_its_turn_is_put_away_at_release(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        lease = await bench.take("a")
        await watched(lease).die()
        bench.pool.release("a")
        await until(lambda: bench.engine.live == 0)
        assert bench.pool.live_count == 0


async def test_turns_wait_in_order_while_all_are_busy(tmp_path: Path) -> None:
    async with opened(tmp_path, max_live=1) as bench:
        served: list[str] = []

        async def turn(name: str) -> None:
            await bench.take(name)
            served.append(name)
            await anyio.lowlevel.checkpoint()
            bench.pool.release(name)

        await bench.take("a")
        async with anyio.create_task_group() as tasks:
            for name in "bcdef":
                tasks.start_soon(turn, name)
                await anyio.wait_all_tasks_blocked()
            assert served == []
            bench.pool.release("a")
        assert served == ["b", "c", "d", "e", "f"]


async def test_a_process_that_is_being_ended_still_counts(tmp_path: Path) -> None:
    async with opened(tmp_path, max_live=1) as bench:
        await bench.turn("a")
        bench.engine.hold_close = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.turn, "b")
            await anyio.wait_all_tasks_blocked()
            assert bench.engine.connects == 1
            bench.engine.hold_close.set()
        assert bench.engine.peak == 1


async def test_one_waiter_puts_one_to_sleep_and_no_more(tmp_path: Path) -> None:
    async with opened(tmp_path, max_live=3) as bench:
        for name in "abc":
            await bench.turn(name)
        bench.engine.hold_close = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.turn, "d")
            await anyio.wait_all_tasks_blocked()
            await bench.turn("c")  # its release looks for room again
            bench.engine.hold_close.set()
        assert [bench.pool.is_hot(one) for one in "abcd"] == [False, True, True, True]


async def test_a_waiter_that_gives_up_costs_no_slot(tmp_path: Path) -> None:
    async with opened(tmp_path, max_live=1) as bench:
        await bench.take("a")
        for name in "bc":
            with anyio.move_on_after(0.01):
                await bench.take(name)
        bench.pool.release("a")
        assert (await bench.turn("d")).origin == "connected"


@pytest.mark.parametrize("how", ["fails", "is_cancelled"])
async def test_a_connect_that_comes_to_nothing_costs_no_slot(tmp_path: Path, how: str) -> None:
    async with opened(tmp_path, max_live=1) as bench:
        for _ in range(3):
            if how == "fails":
                bench.engine.broken = True
                with pytest.raises(EngineUnavailable):
                    await bench.take("a")
            else:
                bench.engine.hold_connect = anyio.Event()
                with anyio.move_on_after(0.01):
                    await bench.take("a")
        bench.engine.broken = False
        bench.engine.hold_connect = None
        await bench.turn("a")


async def test_a_turn_cancelled_while_its_prewarmed_one_comes_leaves_it_on_the_shelf(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, prewarmed=1) as bench:
        hold = bench.engine.hold_connect = anyio.Event()
        await until(lambda: bench.engine.connects == 1)
        with anyio.move_on_after(0.01):
            await bench.take("a")
        hold.set()
        await until(lambda: bench.pool.warm_count == 1)
        assert (await bench.turn("b")).origin == "prewarmed"


async def test_a_conversation_that_is_left_is_stale_at_once_and_gone_after_the_grace(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, stale_grace_s=0.05) as bench:
        await bench.turn("a")
        bench.pool.leave("a")
        assert not bench.pool.is_hot("a")
        assert bench.engine.live == 1
        bench.pool.leave("a")
        await until(lambda: bench.engine.live == 0)


async def test_a_conversation_left_while_its_client_comes_is_stale_too(tmp_path: Path) -> None:
    async with opened(tmp_path, stale_grace_s=0.02) as bench:
        bench.engine.hold_connect = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.take, "a")
            await anyio.wait_all_tasks_blocked()
            bench.pool.leave("a")
            bench.engine.hold_connect.set()
        assert not bench.pool.is_hot("a")
        await until(lambda: bench.engine.live == 0)


async def test_a_turn_in_a_left_conversation_ends_the_old_process_first(tmp_path: Path) -> None:
    """Two writers on one session corrupt it (CC #39151)."""
    async with opened(tmp_path) as bench:
        first = await bench.turn("a")
        session = first.client.session_id
        bench.pool.leave("a")
        bench.engine.hold_close = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: bench.turn("a", resume=session))
            await anyio.wait_all_tasks_blocked()
            assert bench.engine.connects == 1
            bench.engine.hold_close.set()
        assert bench.pool.is_hot("a")
        assert bench.engine.order == [None, session]


async def test_a_stale_one_makes_room_before_the_least_recently_used(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.turn("a")
        await bench.turn("b")
        bench.pool.leave("b")
        await bench.turn("c")
        assert [bench.pool.is_hot(one) for one in "abc"] == [True, False, True]


async def test_a_dropped_conversations_process_is_gone_when_drop_returns(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.turn("a")
        await bench.pool.drop("a")
        assert bench.engine.live == 0
        await bench.pool.drop("a")
        await bench.take("b")
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(bench.pool.drop, "b")
        bench.pool.release("b")
        await bench.pool.discard("b")
        assert bench.engine.live == 0


async def test_a_conversation_dropped_while_its_client_comes_gets_none(tmp_path: Path) -> None:
    async with opened(tmp_path, max_live=1) as bench:
        bench.engine.hold_connect = anyio.Event()
        refused: list[EngineUnavailable] = []

        async def take() -> None:
            try:
                await bench.take("a")
            except EngineUnavailable as exc:
                refused.append(exc)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take)
            await anyio.wait_all_tasks_blocked()
            await bench.pool.drop("a")
            assert bench.engine.live == 0
        assert len(refused) == 1
        bench.engine.hold_connect = None
        await bench.turn("b")


async def test_a_discarded_client_is_killed_and_the_session_wakes_again(tmp_path: Path) -> None:
    async with opened(tmp_path, max_live=1) as bench:
        lease = await bench.turn("a")
        session = lease.client.session_id
        await bench.take("a")
        await bench.pool.discard("a")
        assert bench.engine.live == 0
        assert (await bench.turn("a", resume=session)).client_died is False


async def test_a_client_that_is_ended_twice_gives_one_slot_back(tmp_path: Path) -> None:
    async with opened(tmp_path, max_live=1) as bench:
        await bench.turn("a")
        bench.engine.hold_close = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.turn, "b")
            tasks.start_soon(bench.pool.drop, "a")
            tasks.start_soon(bench.pool.discard, "a")
            await anyio.wait_all_tasks_blocked()
            bench.pool.release("a")
            bench.engine.hold_close.set()
        await bench.turn("c")
        assert bench.engine.peak == 1


async def test_a_client_whose_close_fails_does_not_keep_its_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, max_live=1) as bench:
        lease = await bench.turn("a")
        close = watched(lease).close

        async def fail() -> None:
            await close()
            raise RuntimeError("broken")

        monkeypatch.setattr(lease.client, "close", fail)
        await bench.turn("b")


async def test_closing_ends_what_is_busy_idle_stale_warm_and_on_its_way(tmp_path: Path) -> None:
    async with opened(tmp_path, max_live=4, prewarmed=2) as bench:
        await until(lambda: bench.pool.warm_count == 2)
        await bench.take("busy")
        await bench.turn("idle")
        await bench.turn("stale")
        bench.pool.leave("stale")
        await until(lambda: bench.pool.warm_count == 2)
        bench.engine.hold_connect = anyio.Event()
        refused: list[str] = []

        async def take(name: str, resume: str | None) -> None:
            try:
                await bench.take(name, resume=resume)
            except EngineUnavailable:
                refused.append(name)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take, "coming", "somewhere")
            tasks.start_soon(take, "waiting", "elsewhere")
            await anyio.wait_all_tasks_blocked()
            await bench.pool.close()
            assert bench.engine.live == 0
            assert bench.pool.live_count == bench.pool.warm_count == 0
        assert sorted(refused) == ["coming", "waiting"]
        with pytest.raises(EngineUnavailable):
            await bench.take("late")
        await bench.pool.close()


async def test_closing_while_warming_leaves_no_process(tmp_path: Path) -> None:
    async with opened(tmp_path, prewarmed=1) as bench:
        bench.engine.hold_connect = anyio.Event()
        await until(lambda: bench.engine.connects == 1)
        await bench.pool.close()
        assert bench.engine.live == 0
        bench.engine.hold_connect.set()
        await anyio.wait_all_tasks_blocked()
        assert bench.engine.connects == 1


async def test_closing_waits_idly_for_a_connect_that_is_slow_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tender must not spin on what is due while the pool closes."""
    async with opened(tmp_path, idle_s=0.02) as bench:
        await bench.turn("a")
        bench.engine.hold_connect = anyio.Event()
        hold = bench.engine.hold_abort = anyio.Event()

        async def take() -> None:
            with contextlib.suppress(EngineUnavailable):
                await bench.take("b")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take)
            tasks.start_soon(bench.pool.close)
            looked = 0
            due_at = ClientPool._due_at  # noqa: SLF001  how often it looks shows nowhere else

            def count(pool: ClientPool, held: Any) -> float:
                nonlocal looked
                looked += 1
                return due_at(pool, held)

            monkeypatch.setattr(ClientPool, "_due_at", count)
            await anyio.sleep(0.1)
            hold.set()
        assert looked < 10


async def test_a_failing_prewarming_waits_longer_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def sleep(delay: float) -> None:
        if delay >= 1:
            pauses.append(delay)
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(anyio, "sleep", sleep)
    engine = WatchedEngine(tmp_path)
    engine.broken = True
    async with opened(tmp_path, prewarmed=1, engine=engine) as bench:
        while len([one for one in pauses if one != 10]) < 9:
            await anyio.lowlevel.checkpoint()
        bench.engine.broken = False
        while bench.pool.warm_count < 1:
            await anyio.lowlevel.checkpoint()
    assert [one for one in pauses if one != 10][:9] == [1, 2, 4, 8, 16, 32, 60, 60, 60]


async def test_warming_gives_way_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warmth, "_LONGEST_WAY_S", 0.05)
    engine = WatchedEngine(tmp_path)
    shelf = warmth.WarmShelf(engine, SPEC, 1)
    with anyio.fail_after(SOON_S):
        async with anyio.create_task_group() as tasks:
            with shelf.giving_way():
                tasks.start_soon(shelf.run)
                await anyio.wait_all_tasks_blocked()
                assert engine.connects == 0
                await until(lambda: shelf.ready_count == 1)
            await shelf.close()
    assert engine.live == 0
