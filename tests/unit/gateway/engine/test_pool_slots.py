"""The slots of the pool: turns wait for them in order, and whatever goes wrong, none is lost."""

from pathlib import Path

import anyio
import pytest

from gateway.engine.protocol import EngineUnavailable
from tests.unit.gateway.engine.open_pool import opened, watched


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
        assert [bench.pool.is_hot(letter) for letter in "abcd"] == [False, True, True, True]


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
