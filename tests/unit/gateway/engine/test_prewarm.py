"""Clients that are started before somebody wants one."""

from pathlib import Path

import anyio
import pytest

from gateway.engine import prewarm
from tests.support.engine_talk import until
from tests.support.engine_watched import WatchedEngine
from tests.unit.gateway.engine.open_pool import OTHER, SOON_S, SPEC, opened, watched


async def test_a_fresh_conversation_takes_the_prewarmed_and_another_is_warmed(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, prewarmed=1) as bench:
        await until(lambda: bench.pool.warm_count == 1)
        assert (await bench.turn("a")).origin == "prewarmed"
        await until(lambda: bench.pool.warm_count == 1)
        assert (await bench.turn("b")).origin == "prewarmed"
        assert bench.pool.live_count == 2


async def test_the_next_is_warmed_after_the_first_text_of_the_turn(tmp_path: Path) -> None:
    async with opened(tmp_path, prewarmed=1) as bench:
        await until(lambda: bench.pool.warm_count == 1)
        await bench.take("a")
        await anyio.wait_all_tasks_blocked()
        assert bench.engine.connects == 1
        bench.pool.text_began()
        await until(lambda: bench.pool.warm_count == 1)


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


async def test_warming_gives_way_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prewarm, "_LONGEST_WAY_S", 0.05)
    engine = WatchedEngine(tmp_path)
    shelf = prewarm.PrewarmPool(engine, SPEC, 1)
    with anyio.fail_after(SOON_S):
        async with anyio.create_task_group() as tasks:
            with shelf.giving_way():
                tasks.start_soon(shelf.run)
                await anyio.wait_all_tasks_blocked()
                assert engine.connects == 0
                await until(lambda: shelf.ready_count == 1)
            await shelf.close()
    assert engine.live == 0
