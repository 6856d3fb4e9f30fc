"""The pool: reuse, sleep, memory, and prewarmed processes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.engine import prewarm
from gateway.engine.pool import ClientPool
from tests.support.engine_talk import until
from tests.support.engine_watched import WatchedClient, WatchedEngine
from tests.unit.gateway.engine.open_pool import OTHER, SOON_S, SPEC, opened, watched


async def test_a_conversation_keeps_its_client_until_its_options_change(tmp_path: Path) -> None:
    async with opened(tmp_path, max_live=1) as bench:
        first, second = await bench.turn("a"), await bench.turn("a")
        assert first.client is second.client
        assert (first.origin, second.origin) == ("connected", "reused")
        assert [bench.pool.is_hot(letter) for letter in "ab"] == [True, False]
        third = await bench.turn("a", spec=OTHER, resume=first.client.session_id)
        assert third.client is not first.client
        assert (third.origin, watched(third).spec) == ("woken", OTHER)
        assert bench.engine.peak == 1


async def test_the_least_recently_used_sleeps_and_wakes_by_its_session(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        old = await bench.turn("a")
        session = old.client.session_id
        await bench.turn("b")
        await bench.turn("a")
        await bench.turn("c")
        assert [bench.pool.is_hot(letter) for letter in "abc"] == [True, False, True]
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


async def test_too_much_memory_puts_the_least_recently_used_to_sleep_and_nobody_else(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, max_live=4, max_memory_bytes=100) as bench:
        for name in "abc":
            watched(await bench.turn(name)).memory_bytes = 40
        watched(await bench.take("d")).memory_bytes = 15
        hold = bench.engine.hold_close = anyio.Event()
        for _ in range(3):  # while its memory is being freed, too
            await bench.pool.keep_memory_bound()
        assert [bench.pool.is_hot(letter) for letter in "abcd"] == [False, True, True, True]
        hold.set()
        await until(lambda: bench.pool.live_count == 3)
        assert bench.pool.memory_bytes == 95
        await bench.pool.keep_memory_bound()
        await anyio.wait_all_tasks_blocked()
        assert [bench.pool.is_hot(letter) for letter in "abcd"] == [False, True, True, True]


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


async def test_an_idle_pool_is_measured_once_and_again_after_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = measured = 0

    async def sleep(_delay: float) -> None:
        nonlocal looked
        looked += 1
        await anyio.lowlevel.checkpoint()

    async def measure(_pool: ClientPool) -> None:
        nonlocal measured
        measured += 1
        await anyio.lowlevel.checkpoint()

    async def looked_again() -> None:
        seen = looked
        while looked < seen + 5:
            await anyio.lowlevel.checkpoint()

    async with opened(tmp_path, run=False) as bench:
        lease = await bench.turn("a")
        monkeypatch.setattr(ClientPool, "keep_memory_bound", measure)
        monkeypatch.setattr(anyio, "sleep", sleep)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.pool.run)
            await looked_again()
            assert measured == 1
            await bench.take("a")
            await looked_again()
            assert measured > 3  # a busy one is measured each time
            bench.pool.release("a")
            await looked_again()
            measured = 0
            await looked_again()
            assert measured == 0
            await bench.take("a")
            bench.pool.release("a")  # between two looks
            await looked_again()
            assert measured == 1
            tasks.cancel_scope.cancel()
        assert lease.client.is_alive()


async def test_a_client_that_died_between_turns_or_in_one_is_told_and_put_away(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as bench:
        first = await bench.turn("a")
        session = first.client.session_id
        await watched(first).die()
        assert not bench.pool.is_hot("a")
        lease = await bench.take("a", resume=session)
        assert (lease.origin, lease.client_died) == ("woken", True)
        await watched(lease).die()
        bench.pool.release("a")
        await until(lambda: bench.engine.live == 0)
        assert bench.pool.live_count == 0


async def test_processes_that_cannot_be_measured_are_counted_and_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.engine.pool._MEASURE_EVERY_S", 0)
    faults = [OSError("no descriptor is left")]

    def memory_bytes_blocking(_: WatchedClient) -> int:
        if faults:
            raise faults.pop()
        return 7

    monkeypatch.setattr(WatchedClient, "memory_bytes_blocking", memory_bytes_blocking)
    failed: list[str] = []
    async with opened(tmp_path, run=False) as bench, anyio.create_task_group() as tasks:
        await bench.turn("a")
        tasks.start_soon(bench.pool.run, failed.append)
        while bench.pool.memory_bytes != 7:  # noqa: ASYNC110  measuring tells nobody
            await anyio.sleep(0.01)
        assert failed == ["pool_memory"]
        tasks.cancel_scope.cancel()


async def test_the_next_is_warmed_after_the_first_texts_of_turns_that_got_clients(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, prewarmed=1) as bench:
        await until(lambda: bench.pool.warm_count == 1)
        assert [(await bench.take(name)).origin for name in "ab"] == ["prewarmed", "connected"]
        bench.pool.text_began("a")
        await anyio.wait_all_tasks_blocked()
        assert bench.engine.connects == 2
        bench.pool.text_began("b")
        await until(lambda: bench.pool.warm_count == 1)


async def test_as_many_are_kept_warm_as_began_at_once_until_it_is_calm_or_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, max_live=8, prewarmed=1, max_memory_bytes=7 * 2**29) as bench:

        async def begin(*names: str) -> list[str]:
            leases = [await bench.take(name) for name in names]
            for name in names:
                bench.pool.release(name)
            return [lease.origin for lease in leases]

        await until(lambda: bench.pool.warm_count == 1)
        assert await begin("a") == ["prewarmed"]
        await until(lambda: bench.pool.warm_count == 1)
        assert await begin(*"bcde") == ["prewarmed", *["connected"] * 3]
        await until(lambda: bench.pool.warm_count == 4)
        await anyio.wait_all_tasks_blocked()
        assert bench.pool.warm_count == 4

        bench.engine.living[0].memory_bytes = 5 * 2**29
        hold = bench.engine.hold_close = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.pool.keep_memory_bound)
            await anyio.wait_all_tasks_blocked()
            taken = await bench.take("f")
            hold.set()
        assert taken.client.is_alive()
        assert (bench.pool.live_count, bench.pool.warm_count) == (6, 1)

        bench.engine.living[0].memory_bytes = 0
        await bench.pool.keep_memory_bound()
        bench.pool.release("f")
        await until(lambda: bench.pool.warm_count == 4)
        monkeypatch.setattr(prewarm, "_CALM_S", 0)
        assert await begin(*"gh") == ["prewarmed"] * 2
        await bench.pool.keep_memory_bound()
        assert bench.pool.warm_count == 1


async def test_a_fresh_conversation_waits_for_the_one_on_its_way_that_a_cancelled_turn_left(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, prewarmed=1) as bench:
        bench.engine.hold_connect = anyio.Event()
        await until(lambda: bench.engine.connects == 1)
        with anyio.move_on_after(0.01):
            await bench.take("a")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.turn, "b")
            await anyio.wait_all_tasks_blocked()
            assert bench.engine.connects == 1
            bench.engine.hold_connect.set()
        assert [bench.pool.is_hot(letter) for letter in "ab"] == [False, True]


async def test_the_prewarmed_is_for_its_make_and_for_a_lost_session_and_passed_over_if_it_died(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, prewarmed=1) as bench:
        await until(lambda: bench.pool.warm_count == 1)
        lease = await bench.turn("a", spec=OTHER)
        assert (lease.origin, watched(lease).spec) == ("connected", OTHER)
        assert bench.pool.warm_count == 1
        lease = await bench.turn("b", resume="nowhere")
        assert (lease.origin, lease.session_lost) == ("prewarmed", True)
        await until(lambda: bench.pool.warm_count == 1)
        warm = bench.engine.living[-1]
        await warm.die()
        assert bench.pool.warm_count == 0
        lease = await bench.turn("c")
        assert lease.origin == "connected"
        assert warm.close_calls == 1
        assert lease.client.is_alive()


async def test_closing_while_warming_leaves_no_process(tmp_path: Path) -> None:
    async with opened(tmp_path, prewarmed=1) as bench:
        bench.engine.hold_connect = anyio.Event()
        await until(lambda: bench.engine.connects == 1)
        await bench.pool.close()
        assert bench.engine.live == 0
        bench.engine.hold_connect.set()
        await anyio.wait_all_tasks_blocked()
        assert bench.engine.connects == 1


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
        while len([pause for pause in pauses if pause != 10]) < 9:
            await anyio.lowlevel.checkpoint()
        bench.engine.broken = False
        while bench.pool.warm_count < 1:
            await anyio.lowlevel.checkpoint()
    assert [pause for pause in pauses if pause != 10][:9] == [1, 2, 4, 8, 16, 32, 60, 60, 60]


async def test_prewarmed_clients_with_options_of_yesterday_are_not_given_out_and_end(
    tmp_path: Path,
) -> None:
    engine, specs = WatchedEngine(tmp_path), [SPEC]
    shelf = prewarm.PrewarmPool(engine, lambda: specs[-1], 1, lambda: 1)
    with anyio.fail_after(SOON_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shelf.run)
            await until(lambda: shelf.ready_count == 1)
            (old,) = shelf.clients()
            specs.append(replace(SPEC, model="another"))
            assert await shelf.take(SPEC) is None
            assert await shelf.take(specs[-1]) is None
            await shelf.end_surplus()
            assert not old.is_alive()
            await until(lambda: shelf.ready_count == 1)
            assert await shelf.take(specs[-1]) is not None
            await shelf.close()


async def test_nobodys_client_is_prewarmed_and_none_of_one_user_given_to_another(
    tmp_path: Path,
) -> None:
    engine, specs = WatchedEngine(tmp_path), list[Any]([None])
    ada, bob = (replace(SPEC, user_id=user_id) for user_id in ("ada", "bob"))
    shelf = prewarm.PrewarmPool(engine, lambda: specs[-1], 1, lambda: 1)
    with anyio.fail_after(SOON_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shelf.run)
            await anyio.wait_all_tasks_blocked()
            assert (engine.connects, await shelf.take(ada)) == (0, None)
            specs.append(ada)
            shelf.delay("a")
            shelf.resume("a")
            await until(lambda: shelf.ready_count == 1)
            assert await shelf.take(bob) is None
            specs.append(bob)
            assert await shelf.take(bob) is None
            assert await shelf.take(ada) is None
            await shelf.end_surplus()
            await until(lambda: shelf.ready_count == 1)
            assert await shelf.take(bob) is not None
            await shelf.close()


async def test_warming_gives_way_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prewarm, "_LONGEST_WAY_S", 0.5)
    engine = WatchedEngine(tmp_path)
    shelf = prewarm.PrewarmPool(engine, lambda: SPEC, 1, lambda: 1)
    with anyio.fail_after(SOON_S):
        async with anyio.create_task_group() as tasks:
            shelf.delay("a")
            tasks.start_soon(shelf.run)
            await anyio.wait_all_tasks_blocked()
            assert engine.connects == 0
            await until(lambda: shelf.ready_count == 1)
            await shelf.close()
    assert engine.live == 0
