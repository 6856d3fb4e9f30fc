"""A conversation that somebody opens: its agent is woken before the message comes, at nobody's expense."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.conversations.model import Turn
from gateway.engine import pool
from gateway.errors import NotFound
from gateway.ids import LOCAL_USER as ME
from gateway.ids import UserId
from gateway.turns.requests import Accepted
from tests.support.builders import codes
from tests.support.engine_talk import until
from tests.support.engine_watched import WatchedEngine
from tests.support.services import HANG, RunningServices, running_services, script

ECHO = script({"echo": "messages"})


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_STAYS_S", 0)


@dataclass
class Bench:
    """Services with conversations that have had a turn and whose processes have ended."""

    services: RunningServices
    engine: WatchedEngine
    asleep: list[str]

    async def wake(self, conversation_id: str) -> None:
        await self.services.messages_of(conversation_id)
        await until(lambda: self.services.pool.is_hot(conversation_id))

    async def look_at(self, conversation_id: str) -> None:
        """Open a conversation, and wait until nothing more happens."""
        await self.services.messages_of(conversation_id)
        await anyio.wait_all_tasks_blocked()

    async def last_turn(self, conversation_id: str) -> Turn:
        """Return a conversation's last turn, without opening it."""
        earlier = self.services.chat.conversations.messages
        return (await earlier(ME, conversation_id, limit=9, before_seq=9))[-1]

    async def open_while_held(self, conversation_id: str) -> None:
        """Open a conversation whose agent does not come before `hold_connect` is set."""
        self.engine.hold_connect = anyio.Event()
        before = self.engine.connects
        await self.services.messages_of(conversation_id)
        await until(lambda: self.engine.connects > before)

    async def send_and_wait_for_the_process(self, conversation_id: str) -> Accepted:
        """Send a message, and return when its turn waits for the process that is being started."""
        accepted = await self.services.send(ECHO, conversation_id)
        await until(lambda: conversation_id not in self.services.pool._opened_at)  # noqa: SLF001
        return accepted


@asynccontextmanager
async def opened(root: Path, count: int = 1, **settings: Any) -> AsyncIterator[Bench]:
    given = {"prewarmed_clients": 1, **settings}
    async with running_services(root, make_engine=WatchedEngine, **given) as services:
        engine = services.engine
        assert isinstance(engine, WatchedEngine)
        asleep = []
        for _ in range(count):
            asleep.append((await services.ask("the secret word is tea"))["conversation_id"])
            await services.pool.drop(asleep[-1])
        await until(lambda: services.pool.warm_count == given["prewarmed_clients"])
        engine.order.clear()
        yield Bench(services, engine, asleep)


async def test_an_opened_conversation_is_woken_once_and_its_next_turn_runs_there(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as bench:
        (conversation_id,) = bench.asleep
        async with anyio.create_task_group() as readers:
            for _ in range(3):
                readers.start_soon(bench.services.messages_of, conversation_id)
        await bench.wake(conversation_id)
        process = bench.services.pool.processes()[0]
        result = await bench.services.ask(ECHO, conversation_id)
        sample, _ = bench.services.metrics.render()
        bench.services.assert_nothing_is_left()
    assert process.state == "idle"
    assert "tea" in result["reply"]
    assert codes(result["notices"]) == []
    assert len(bench.engine.order) == 1
    assert b'candor_clients_connected_total{origin="woken"} 1.0' in sample


async def test_following_its_events_opens_it_and_catching_up_or_a_stranger_does_not(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as bench:
        (conversation_id,) = bench.asleep
        reader, messages = bench.services.chat.reader, bench.services.chat.conversations.messages
        eve = UserId("eve")
        for open_it in (
            reader.follow(eve, conversation_id),
            messages(eve, conversation_id, limit=9, before_seq=None),
        ):
            with pytest.raises(NotFound):
                await open_it
        turn = await bench.last_turn(conversation_id)
        await reader.follow(ME, conversation_id, f"{turn.id}:0")
        await anyio.wait_all_tasks_blocked()
        assert bench.engine.order == []
        await reader.follow(ME, conversation_id)
        await until(lambda: bench.services.pool.is_hot(conversation_id))


async def test_a_message_that_comes_meanwhile_waits_for_the_same_process(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.open_while_held(bench.asleep[0])
        accepted = await bench.send_and_wait_for_the_process(bench.asleep[0])
        assert bench.engine.hold_connect is not None
        bench.engine.hold_connect.set()
        assert "tea" in (await bench.services.result_of(accepted))["reply"]
    assert len(bench.engine.order) == 1


async def test_a_message_does_not_wait_for_a_start_that_has_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_STAYS_S", 1000)
    async with opened(tmp_path) as bench:
        await bench.look_at(bench.asleep[0])
        assert "tea" in (await bench.services.ask(ECHO, bench.asleep[0]))["reply"]
        bench.services.assert_nothing_is_left()


async def test_a_conversation_deleted_while_it_is_woken_leaves_no_process(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.open_while_held(bench.asleep[0])
        with anyio.fail_after(20):
            await bench.services.delete(bench.asleep[0])
        assert bench.services.pool.live_count == 0
        assert bench.engine.live == 1, "the prewarmed one"
        with pytest.raises(NotFound):
            await bench.services.messages_of(bench.asleep[0])
        bench.services.assert_nothing_is_left()


async def test_a_turn_whose_conversation_is_dropped_while_it_waits_for_the_process_gets_none(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as bench:
        await bench.open_while_held(bench.asleep[0])
        accepted = await bench.send_and_wait_for_the_process(bench.asleep[0])
        await bench.services.pool.drop(bench.asleep[0])
        assert bench.services.pool.live_count == 0
        assert (await bench.services.result_of(accepted))["outcome"] == "engine_failed"
        bench.services.assert_nothing_is_left()


async def test_a_conversation_opened_while_it_falls_asleep_is_woken_when_its_process_is_gone(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as bench:
        await bench.wake(bench.asleep[0])
        bench.services.pool._opened_at.clear()  # noqa: SLF001
        bench.engine.hold_close = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.services.pool.drop, bench.asleep[0])
            await anyio.wait_all_tasks_blocked()
            await bench.look_at(bench.asleep[0])
            assert len(bench.engine.order) == 1
            bench.engine.hold_close.set()
            await until(lambda: bench.services.pool.is_hot(bench.asleep[0]))


async def test_where_all_places_are_in_use_nothing_is_woken_and_nothing_ends(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, max_live_clients=1) as bench:
        in_use = (await bench.services.ask("hello"))["conversation_id"]
        await until(lambda: bench.services.pool.warm_count == 1)
        bench.engine.order.clear()
        await bench.look_at(bench.asleep[0])
        assert bench.services.pool.is_hot(in_use)
    assert bench.engine.order == []


async def test_waking_waits_for_a_turn_without_text_and_for_another_waking(tmp_path: Path) -> None:
    async with opened(tmp_path, 2) as bench:
        running = await bench.services.send(script({"hang": True}))
        await until(lambda: bench.services.pool.live_count == 1)
        for conversation_id in bench.asleep:
            await bench.look_at(conversation_id)
        assert bench.engine.order == []
        bench.engine.hold_connect = anyio.Event()
        await bench.services.stop(running)
        await until(lambda: bench.engine.order != [])
        await anyio.wait_all_tasks_blocked()
        assert len(set(bench.engine.order) - {None}) == 1
        bench.engine.hold_connect.set()
        await until(lambda: bench.services.pool.is_hot(bench.asleep[1]))
        assert not bench.services.pool.is_hot(bench.asleep[0])


async def test_an_unused_one_makes_room_for_the_next_opened_and_for_any_turn(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, 2, max_live_clients=2) as bench:
        first, second = bench.asleep
        used = (await bench.services.ask("hello"))["conversation_id"]
        await bench.wake(first)
        await bench.wake(second)
        assert not bench.services.pool.is_hot(first)
        await bench.services.ask("hello")
        assert not bench.services.pool.is_hot(second)
        assert bench.services.pool.is_hot(used), "it was used longer ago than the other was woken"


async def test_a_turn_that_needs_the_place_meanwhile_gets_it(tmp_path: Path) -> None:
    async with opened(tmp_path, max_live_clients=1) as bench:
        await bench.open_while_held(bench.asleep[0])
        other = await bench.services.send("hello")
        await anyio.wait_all_tasks_blocked()
        assert bench.engine.hold_connect is not None
        bench.engine.hold_connect.set()
        assert (await bench.services.result_of(other))["outcome"] == "answered"
        assert not bench.services.pool.is_hot(bench.asleep[0])


async def test_a_lost_session_and_a_refused_start_are_told_in_the_turn_and_a_death_is_not(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, 3) as bench:
        died, lost, refused = bench.asleep
        await bench.wake(died)
        await bench.engine.living[-1].die()
        replaced = await bench.services.ask(ECHO, died)
        bench.engine.sessions.clear()
        await bench.wake(lost)
        result = await bench.services.ask(ECHO, lost)
        bench.engine.broken = True
        await bench.look_at(refused)
        failed = await bench.services.ask(ECHO, refused)
        bench.services.assert_nothing_is_left()
    assert "tea" in replaced["reply"]
    assert (codes(replaced["notices"]), codes(result["notices"])) == ([], ["session_lost"])
    assert failed["outcome"] == "engine_failed"


async def test_an_unused_one_sleeps_again_and_polling_does_not_wake_it(tmp_path: Path) -> None:
    async with opened(tmp_path, idle_client_s=0.05) as bench:
        for _ in range(2):
            bench.engine.order.clear()
            bench.services.pool._opened_at.clear()  # noqa: SLF001
            await bench.services.messages_of(bench.asleep[0])
            await until(lambda: bench.engine.order != [])
            await until(lambda: bench.engine.live == 1)  # the prewarmed one
            await until(lambda: bench.services.pool.live_count == 0)
        for _ in range(3):
            await bench.look_at(bench.asleep[0])
        assert len(bench.engine.order) == 1
        await bench.services.ask(ECHO, bench.asleep[0])
        await bench.services.pool.drop(bench.asleep[0])
        bench.engine.order.clear()
        await bench.services.messages_of(bench.asleep[0])
        await until(lambda: bench.engine.order != [])


async def test_a_shutdown_ends_what_is_being_woken(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        await bench.open_while_held(bench.asleep[0])
    assert bench.engine.live == 0


@pytest.mark.parametrize(
    "setting", [{"wake_opened": "off"}, {"prewarmed_clients": 0}, {"max_live_mb": 1}]
)
async def test_a_setting_or_the_bound_of_memory_switches_it_off(
    tmp_path: Path, setting: dict[str, Any]
) -> None:
    async with opened(tmp_path, **setting) as bench:
        for prewarmed in bench.engine.living:
            prewarmed.memory_bytes = 1 << 20
        await bench.services.pool.keep_memory_bound()
        await bench.look_at(bench.asleep[0])
    assert bench.engine.order == []


async def test_neither_a_fork_nor_a_conversation_at_work_is_woken(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        (source,) = bench.asleep
        turn = await bench.last_turn(source)
        await bench.look_at(await bench.services.fork(source, turn.id))
        assert bench.engine.order == []
        running = await bench.services.send(HANG, source)
        await bench.services.messages_of(source)
        await until(lambda: bench.services.pool.is_hot(source))
        await anyio.wait_all_tasks_blocked()
        await bench.services.stop(running)
    assert len(bench.engine.order) == 1
