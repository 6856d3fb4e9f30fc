"""The pool: slots, waiting turns, and the ends of processes."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.engine.pool import ClientPool
from gateway.engine.protocol import EngineUnavailable
from tests.support.engine_talk import until
from tests.unit.gateway.engine.open_pool import opened, watched


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
        bench.engine.hold_connect = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.take, "b")
            await anyio.wait_all_tasks_blocked()
            bench.pool.leave("b")
            bench.engine.hold_connect.set()
        assert not bench.pool.is_hot("b"), "it was left while its client came"
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
        assert [bench.pool.is_hot(letter) for letter in "abc"] == [True, False, True]


async def test_a_dropped_or_discarded_conversations_process_is_gone_at_once(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, max_live=1) as bench:
        lease = await bench.turn("a")
        session = lease.client.session_id
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
        stuck = await bench.take("a", resume=session)
        bench.engine.hold_close = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.pool.discard, "a")
            await anyio.wait_all_tasks_blocked()
            assert not watched(stuck).inner.is_alive(), "it is killed before it is closed"
            bench.engine.hold_close.set()
        assert bench.engine.live == 0
        assert (await bench.turn("a", resume=session)).client_died is False


async def test_a_conversation_dropped_while_its_client_comes_gets_none(tmp_path: Path) -> None:
    async with opened(tmp_path, max_live=1) as bench:
        bench.engine.hold_connect = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.try_take, "a")
            await anyio.wait_all_tasks_blocked()
            await bench.pool.drop("a")
            assert bench.engine.live == 0
        assert bench.refused == ["a"]
        bench.engine.hold_connect = None
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
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.try_take, "coming", "somewhere")
            tasks.start_soon(bench.try_take, "waiting", "elsewhere")
            await anyio.wait_all_tasks_blocked()
            await bench.pool.close()
            assert bench.engine.live == 0
            assert bench.pool.live_count == bench.pool.warm_count == 0
        assert sorted(bench.refused) == ["coming", "waiting"]
        with pytest.raises(EngineUnavailable):
            await bench.take("late")
        await bench.pool.close()


async def test_closing_waits_idly_for_a_connect_that_is_slow_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tender must not spin on what is due while the pool closes."""
    async with opened(tmp_path, idle_s=0.02) as bench:
        await bench.turn("a")
        bench.engine.hold_connect = anyio.Event()
        hold = bench.engine.hold_abort = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.try_take, "b")
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


async def test_a_waiter_that_gives_up_or_a_connect_that_comes_to_nothing_costs_no_slot(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, max_live=1) as bench:
        for _ in range(3):
            bench.engine.broken = True
            with pytest.raises(EngineUnavailable):
                await bench.take("a")
            bench.engine.broken = False
            bench.engine.hold_connect = anyio.Event()
            with anyio.move_on_after(0.01):
                await bench.take("a")
            bench.engine.hold_connect = None
        await bench.take("a")
        for name in "bc":
            with anyio.move_on_after(0.01):
                await bench.take(name)
        bench.pool.release("a")
        assert (await bench.turn("d")).origin == "connected"


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
