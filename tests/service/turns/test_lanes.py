"""Turns of one conversation in order, of different ones side by side; queue, stop, leave, delete."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.assemble import Services
from gateway.chat import Chat
from gateway.conversations.model import Turn
from gateway.conversations.sqlite.turns import SqliteTurnStore
from gateway.engine.events import EngineEvent
from gateway.engine.protocol import ClientDead, ClientSpec, Prompt, SessionOrigin
from gateway.engine.scripted import ScriptedClient, ScriptedEngine, ScriptedRun
from gateway.errors import Busy, Conflict, NotFound, Overloaded, ShuttingDown
from gateway.ids import LOCAL_USER as ME
from gateway.ids import UserId
from gateway.turns.requests import Accepted, ChatRequest
from tests.support.builders import Memory, codes
from tests.support.services import (
    HANG,
    ask,
    assert_nothing_is_left,
    begun,
    events_of,
    kinds,
    of_kind,
    result_of,
    running_services,
    script,
    scripted_engine,
    send,
)

ECHO = script({"echo": "messages"})


async def state(services: Services, conversation_id: str) -> str:
    return (await services.chat.get(ME, conversation_id)).state


async def test_turns_of_a_conversation_run_in_order_one_at_a_time(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        first = await send(services, script({"text": "one two three", "delta_delay_ms": 5}))
        others = [
            await send(services, script({"text": f"answer {n}"}), first.conversation_id)
            for n in range(4)
        ]
        results = [await result_of(services, one) for one in (first, *others)]
        async with await services.chat.follow(
            ME, first.conversation_id, f"{first.turn_id}:0"
        ) as subscription:
            seen = await subscription.next(5)
    bounds = [
        (one.type, one.turn_id) for one in seen if one.type in {"turn.started", "turn.completed"}
    ]
    assert bounds == [
        (kind, one.turn_id)
        for one in (first, *others)
        for kind in ("turn.started", "turn.completed")
    ]
    assert [one["reply"] for one in results[1:]] == [f"answer {n}" for n in range(4)]


async def test_conversations_run_side_by_side(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        waiting = [await send(services, HANG) for _ in range(3)]
        for one in waiting:
            await begun(services, one)
        assert services.lanes.running_count == 3
        answered = await ask(services, "hello")
        assert [await state(services, one.conversation_id) for one in waiting] == ["running"] * 3
        for one in waiting:
            await services.chat.interrupt(ME, one.conversation_id)
    assert answered["outcome"] == "answered"


async def test_a_message_to_a_busy_conversation_waits_with_its_place(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        running = await send(services, HANG)
        conversation_id = running.conversation_id
        await begun(services, running)
        queued = [await send(services, f"hello {n}", conversation_id) for n in range(2)]
        view = await services.chat.get(ME, conversation_id)
        assert [one.id for one in view.queue] == [one.turn_id for one in queued]
        for one in queued:
            await events_of(services, one, until="turn.queued")
        await services.chat.interrupt(ME, conversation_id)
        events = [await events_of(services, one) for one in queued]
    assert [of_kind(one, "turn.queued")[0]["position"] for one in events] == [1, 2]
    assert [kinds(one)[:2] for one in events] == [["turn.queued", "turn.started"]] * 2


async def test_a_message_that_will_not_wait_is_refused_and_not_kept(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        running = await send(services, HANG)
        with pytest.raises(Busy):
            await send(services, "hello", running.conversation_id, when_busy="reject")
        messages = await services.chat.messages(
            ME, running.conversation_id, limit=9, before_seq=None
        )
        assert len(messages) == 1
        await services.chat.interrupt(ME, running.conversation_id)
        await result_of(services, running)
        after = await ask(services, "hello", running.conversation_id, when_busy="reject")
    assert after["outcome"] == "answered"


async def test_of_two_that_will_not_wait_one_is_refused(tmp_path: Path) -> None:
    outcomes: list[str] = []

    async def try_to_send(services: Services, conversation_id: str) -> None:
        try:
            await send(services, HANG, conversation_id, when_busy="reject")
            outcomes.append("accepted")
        except Busy:
            outcomes.append("busy")

    async with running_services(tmp_path) as services:
        conversation_id = await services.chat.new_conversation(ME)
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(try_to_send, services, conversation_id)
        await services.chat.interrupt(ME, conversation_id)
    assert sorted(outcomes) == ["accepted"] + ["busy"] * 4


async def test_a_message_can_interrupt_the_running_turn(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        running = await send(services, HANG)
        await begun(services, running)
        after = await ask(services, "hello", running.conversation_id, when_busy="interrupt")
        result = await result_of(services, running)
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert result["reply"].startswith("I begin\n\nYou stopped this turn")
    assert after["outcome"] == "answered"


async def test_a_turn_that_has_not_begun_yet_can_be_interrupted_as_well(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        accepted = await send(services, HANG)
        assert services.lanes.running(accepted.conversation_id) is None, "it has not begun"
        assert await services.chat.interrupt(ME, accepted.conversation_id) == accepted.turn_id
        assert await state(services, accepted.conversation_id) == "stopping"
        result = await result_of(services, accepted)
        again = await send(services, HANG)
        after = await ask(services, "hello", again.conversation_id, when_busy="interrupt")
        assert (await result_of(services, again))["outcome"] == "interrupted"
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert after["outcome"] == "answered"


async def test_a_turn_that_waits_for_memory_or_its_client_can_be_interrupted(
    tmp_path: Path,
) -> None:
    memory = Memory(None)
    async with running_services(tmp_path, memory=memory, recall_deadline_ms=60_000) as services:
        accepted = await send(services, "hello")
        await events_of(services, accepted, until="turn.started")
        await anyio.wait_all_tasks_blocked()
        await services.chat.interrupt(ME, accepted.conversation_id)
        result = await result_of(services, accepted)
        assert_nothing_is_left(services)
        busy = await send(services, "hello")
        await events_of(services, busy, until="turn.started")
        await services.chat.interrupt(ME, busy.conversation_id)
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")


async def test_a_turn_that_waits_for_a_free_client_can_be_interrupted(tmp_path: Path) -> None:
    async with running_services(tmp_path, max_live_clients=1) as services:
        first = await send(services, HANG)
        await begun(services, first)
        second = await send(services, "hello")
        await events_of(services, second, until="turn.started")
        await anyio.wait_all_tasks_blocked()
        await services.chat.interrupt(ME, second.conversation_id)
        result = await result_of(services, second)
        await services.chat.interrupt(ME, first.conversation_id)
        await result_of(services, first)
        assert (await ask(services, "hello", second.conversation_id))["outcome"] == "answered"
        assert_nothing_is_left(services)
    assert result["outcome"] == "interrupted"


async def test_nothing_to_interrupt_is_a_conflict(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        result = await ask(services, "hello")
        with pytest.raises(Conflict) as told:
            await services.chat.interrupt(ME, result["conversation_id"])
        with pytest.raises(NotFound):
            await services.chat.interrupt(ME, "cnv_unknown")
        with pytest.raises(NotFound):
            await services.chat.interrupt(UserId("bob"), result["conversation_id"])
    assert told.value.specific_code == "nothing_running"


def make_deaf(monkeypatch: pytest.MonkeyPatch) -> anyio.Event:
    """Let the agent ignore interrupts; the event tells that one came."""
    came = anyio.Event()

    async def ignore(_run: ScriptedRun) -> None:
        came.set()
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(ScriptedRun, "interrupt", ignore)
    return came


async def test_a_turn_is_stopping_until_the_agent_has_really_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    came = make_deaf(monkeypatch)
    async with running_services(tmp_path, interrupt_grace_s=60) as services:
        accepted = await send(services, HANG)
        await begun(services, accepted)
        assert await state(services, accepted.conversation_id) == "running"
        await services.chat.interrupt(ME, accepted.conversation_id)
        with anyio.fail_after(5):
            await came.wait()
        await anyio.wait_all_tasks_blocked()
        assert await state(services, accepted.conversation_id) == "stopping"
        assert services.lanes.running_count == 1
        await scripted_engine(services).clients[0].kill()
        result = await result_of(services, accepted)
        assert await state(services, accepted.conversation_id) == "idle"
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")


async def test_an_agent_that_ignores_the_interrupt_is_killed_after_the_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_deaf(monkeypatch)
    async with running_services(tmp_path, interrupt_grace_s=0.05) as services:
        accepted = await send(services, HANG)
        await begun(services, accepted)
        await services.chat.interrupt(ME, accepted.conversation_id)
        result = await result_of(services, accepted)
        assert scripted_engine(services).clients == []
        after = await ask(services, ECHO, accepted.conversation_id)
        assert_nothing_is_left(services)
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert codes(result["notices"]) == ["kill"]
    assert "I begin" in after["reply"], "the session was resumed"


async def test_an_agent_that_comes_to_its_own_end_in_the_grace_was_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_deaf(monkeypatch)
    async with running_services(tmp_path) as services:
        accepted = await send(services, script({"text": "I say it all.", "delta_delay_ms": 20}))
        await begun(services, accepted)
        await services.chat.interrupt(ME, accepted.conversation_id)
        result = await result_of(services, accepted)
    assert (result["outcome"], result["stop_reason"]) == ("answered", "end_turn")
    assert result["reply"] == "I say it all."


async def test_a_start_that_hangs_is_ended_by_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(client: ScriptedClient, _prompt: Prompt) -> ScriptedRun:
        while client.is_alive():
            await anyio.lowlevel.checkpoint()
        raise ClientDead("The agent process has ended.")

    async with running_services(tmp_path, turn_timeout_s=0.1, interrupt_grace_s=0.1) as services:
        with monkeypatch.context() as patched:
            patched.setattr(ScriptedClient, "start_run", hang)
            result = await ask(services, "hello")
        after = await ask(services, "hello", result["conversation_id"])
        assert_nothing_is_left(services)
    assert (result["outcome"], result["stop_reason"]) == ("stopped", "timeout")
    assert after["outcome"] == "answered"


async def test_a_stop_while_a_dead_client_is_replaced_leaves_no_client_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_kill = ScriptedClient.kill
    async with running_services(tmp_path) as services:
        accepted = await send(services, "hello")
        conversation_id = accepted.conversation_id

        async def stop_and_kill(client: ScriptedClient) -> None:
            current = services.lanes.running(conversation_id)
            assert current is not None
            current.control.stop("user_interrupt")
            await anyio.lowlevel.checkpoint()
            await real_kill(client)

        async def die(_client: ScriptedClient, _prompt: Prompt) -> ScriptedRun:
            await anyio.lowlevel.checkpoint()
            raise ClientDead("The agent process has ended.")

        with monkeypatch.context() as patched:
            patched.setattr(ScriptedClient, "start_run", die)
            patched.setattr(ScriptedClient, "kill", stop_and_kill)
            result = await result_of(services, accepted)
        assert scripted_engine(services).clients == []
        assert_nothing_is_left(services)
        after = await ask(services, "hello", conversation_id)
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert after["outcome"] == "answered"


async def test_a_stop_between_a_runs_last_event_and_its_end_is_not_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ScriptedRun.events
    async with running_services(tmp_path) as services:

        async def events(run: ScriptedRun) -> AsyncIterator[EngineEvent]:
            async for event in real(run):
                yield event
            current = services.lanes.running(accepted.conversation_id)
            assert current is not None
            current.control.stop("user_interrupt")
            await anyio.wait_all_tasks_blocked()

        monkeypatch.setattr(ScriptedRun, "events", events)
        accepted = await send(services, "hello")
        result = await result_of(services, accepted)
    assert (result["outcome"], result["stop_reason"]) == ("answered", "end_turn")


async def test_a_stop_during_the_summary_ends_the_turn(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        accepted = await send(
            services,
            script(
                {"tool": "Bash", "input": {"command": "ls"}},
                {"empty": True},
                {"on_followup": [{"text": "I did ", "delta_delay_ms": 10_000}]},
            ),
        )
        await begun(services, accepted)
        await services.chat.interrupt(ME, accepted.conversation_id)
        result = await result_of(services, accepted)
        assert_nothing_is_left(services)
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert codes(result["notices"]) == ["forced_summary"]


async def test_a_queued_message_can_be_taken_back(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        running = await send(services, HANG)
        conversation_id = running.conversation_id
        await begun(services, running)
        queued = await send(services, "hello", conversation_id)
        await services.chat.take_back(ME, conversation_id, queued.turn_id)
        result = await result_of(services, queued)
        events = await events_of(services, queued)
        with pytest.raises(NotFound):
            await services.chat.take_back(ME, conversation_id, queued.turn_id)
        with pytest.raises(NotFound):
            await services.chat.take_back(ME, conversation_id, running.turn_id)
        await services.chat.interrupt(ME, conversation_id)
        whole = await result_of(services, running)
        messages = await services.chat.messages(ME, conversation_id, limit=9, before_seq=None)
        assert_nothing_is_left(services)
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert result["log_file"] is None, "it never ran, so there is no log"
    assert result.keys() == whole.keys()
    assert kinds(events) == ["turn.queued", "turn.completed"]
    assert [one.id for one in messages] == [running.turn_id]


async def test_a_conversation_that_is_left_finishes_nothing_more(tmp_path: Path) -> None:
    async with running_services(tmp_path, stale_client_grace_s=0) as services:
        running = await send(services, HANG)
        left = running.conversation_id
        await begun(services, running)
        queued = await send(services, "hello", left)
        fresh = await services.chat.new_conversation(ME, leaving=left)
        result, waiting = await result_of(services, running), await result_of(services, queued)
        assert not (await services.chat.get(ME, left)).hot
        remembered = await ask(services, ECHO, fresh)
        messages = await services.chat.messages(ME, left, limit=9, before_seq=None)
        assert_nothing_is_left(services)
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert "This conversation was left" in result["reply"]
    assert waiting["outcome"] == "interrupted"
    assert "it was not run" in waiting["reply"]
    assert "I begin" not in remembered["reply"]
    assert [one.id for one in messages] == [running.turn_id, queued.turn_id]


async def test_a_message_can_leave_its_conversation_and_be_answered_in_a_fresh_one(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path) as services:
        first = await ask(services, "the secret word is tea")
        second = await ask(services, ECHO, first["conversation_id"], new_conversation=True)
        third = await ask(services, ECHO, first["conversation_id"])
    assert second["conversation_id"] != first["conversation_id"]
    assert "tea" not in second["reply"]
    assert "tea" in third["reply"], "the old one remembers still"


async def test_leaving_and_sending_at_once_loses_neither(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        running = await send(services, HANG)
        left = running.conversation_id
        await begun(services, running)
        async with anyio.create_task_group() as tasks:

            async def leave() -> None:
                await services.chat.new_conversation(ME, leaving=left)

            tasks.start_soon(leave)
            sent = await send(services, ECHO, left)
        result = await result_of(services, sent)
        assert (await result_of(services, running))["outcome"] == "interrupted"
        assert_nothing_is_left(services)
    assert result["outcome"] in {"answered", "interrupted"}


class Noticing(ScriptedEngine):
    """Does something at the very moment at which a client is connected."""

    connected: Callable[[], None] = staticmethod(lambda: None)

    async def connect(self, spec: ClientSpec, origin: SessionOrigin) -> ScriptedClient:
        client = await super().connect(spec, origin)
        self.connected()
        return client


async def test_a_conversation_left_at_the_moment_it_gets_its_client_keeps_none(
    tmp_path: Path,
) -> None:
    async with running_services(
        tmp_path, make_engine=Noticing, stale_client_grace_s=3600
    ) as services:
        engine = services.engine
        assert isinstance(engine, Noticing)
        accepted = await send(services, "hello")

        def leave() -> None:
            current = services.lanes.running(accepted.conversation_id)
            assert current is not None
            current.control.stop("user_interrupt", "left")
            services.pool.leave(accepted.conversation_id)

        engine.connected = leave
        result = await result_of(services, accepted)
        assert not services.pool.is_hot(accepted.conversation_id)
        assert_nothing_is_left(services)
    assert result["outcome"] == "interrupted"


async def test_deleting_ends_what_runs_and_waits_and_forgets_the_session(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        running = await send(services, HANG)
        conversation_id = running.conversation_id
        await begun(services, running)
        queued = await send(services, "hello", conversation_id)
        with anyio.fail_after(10):
            await services.chat.delete(ME, conversation_id)
        for accepted in (running, queued):
            with pytest.raises(NotFound):
                await result_of(services, accepted)
        for call in (services.chat.get, services.chat.delete, services.chat.interrupt):
            with pytest.raises(NotFound):
                await call(ME, conversation_id)
        assert scripted_engine(services).clients == []
        assert scripted_engine(services).sessions == {}
        assert_nothing_is_left(services)


async def test_a_message_that_comes_while_its_conversation_is_deleted_is_refused_or_goes_with_it(
    tmp_path: Path,
) -> None:
    told: list[str] = []

    async def try_to_send(services: Services, conversation_id: str) -> None:
        try:
            accepted = await send(services, "hello", conversation_id)
            await result_of(services, accepted)
            told.append("answered")
        except NotFound:
            told.append("gone")

    async with running_services(tmp_path) as services:
        running = await send(services, HANG)
        await begun(services, running)
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(try_to_send, services, running.conversation_id)
                tasks.start_soon(services.chat.delete, ME, running.conversation_id)
                for _ in range(3):
                    tasks.start_soon(try_to_send, services, running.conversation_id)
        assert scripted_engine(services).clients == []
        assert scripted_engine(services).sessions == {}
        assert_nothing_is_left(services)
    assert told == ["gone"] * 6


async def test_a_message_that_is_being_written_down_when_its_conversation_is_deleted_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing, go_on = anyio.Event(), anyio.Event()
    real = SqliteTurnStore.accept
    told: list[Accepted] = []

    async def slow(store: SqliteTurnStore, turn: Turn, **more: Any) -> Turn:
        writing.set()
        await go_on.wait()
        return await real(store, turn, **more)

    async with running_services(tmp_path) as services:
        first = await ask(services, "hello")
        conversation_id = first["conversation_id"]
        monkeypatch.setattr(SqliteTurnStore, "accept", slow)

        async def post() -> None:
            told.append(await send(services, "hello", conversation_id))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(post)
                await writing.wait()
                tasks.start_soon(services.chat.delete, ME, conversation_id)
                await anyio.wait_all_tasks_blocked()
                go_on.set()
        with pytest.raises(NotFound):
            await result_of(services, told[0])
        assert scripted_engine(services).sessions == {}
        assert_nothing_is_left(services)


async def test_an_idle_conversation_that_is_left_is_cold_at_once(tmp_path: Path) -> None:
    async with running_services(tmp_path, stale_client_grace_s=3600) as services:
        result = await ask(services, "hello")
        conversation_id = result["conversation_id"]
        assert (await services.chat.get(ME, conversation_id)).hot
        await services.chat.new_conversation(ME, leaving=conversation_id)
        assert not (await services.chat.get(ME, conversation_id)).hot


async def test_a_fork_remembers_up_to_the_turn_and_shows_the_history_until_then(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path) as services:
        first = await ask(services, "one")
        conversation_id = first["conversation_id"]
        second = await ask(services, "two", conversation_id)
        await ask(services, "three", conversation_id)
        fork_id = await services.chat.fork(ME, conversation_id, second["turn_id"])
        copied = await services.chat.messages(ME, fork_id, limit=9, before_seq=None)
        forked = await ask(services, ECHO, fork_id)
        again = await ask(services, ECHO, fork_id)
        original = await ask(services, ECHO, conversation_id)
    assert [one.message for one in copied] == ["one", "two"]
    assert all(one.result and one.result["conversation_id"] == fork_id for one in copied)
    assert "two" in forked["reply"]
    assert "three" not in forked["reply"]
    assert again["reply"].count("echo") == 2
    assert "three" in original["reply"]
    assert original["reply"].count("echo") == 1


async def test_a_fork_is_made_of_turns_that_are_completed_alone(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        running = await send(services, HANG)
        with pytest.raises(Conflict) as told:
            await services.chat.fork(ME, running.conversation_id, running.turn_id)
        other = await ask(services, "hello")
        with pytest.raises(NotFound):
            await services.chat.fork(ME, running.conversation_id, other["turn_id"])
        await services.chat.interrupt(ME, running.conversation_id)
    assert told.value.specific_code == "turn_not_finished"


async def test_the_same_key_and_body_give_the_first_turn_and_another_body_a_conflict(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path) as services:
        first = await ask(services, "hello", idempotency_key="k")
        again = await ask(services, "hello", idempotency_key="k")
        with pytest.raises(Conflict) as told:
            await ask(services, "other", idempotency_key="k")
        someone = await services.chat.accept(
            UserId("bob"), ChatRequest(message="hello", idempotency_key="k")
        )
    async with running_services(tmp_path) as services:
        later = await ask(services, "hello", idempotency_key="k")
    assert first == again == later
    assert told.value.specific_code == "idempotency_key_reused"
    assert someone.turn_id != first["turn_id"]


async def test_the_same_key_many_times_at_once_is_one_turn(tmp_path: Path) -> None:
    results: list[dict[str, object]] = []

    async def post(services: Services) -> None:
        results.append(await ask(services, "hello", idempotency_key="k"))

    async with running_services(tmp_path) as services:
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(post, services)
        page, _ = await services.chat.page(ME, limit=50, cursor=None, query=None)
    assert len(results) == 10
    assert all(one == results[0] for one in results)
    assert len(page) == 1


async def test_too_many_turns_are_refused_and_nothing_of_them_is_kept(tmp_path: Path) -> None:
    async with running_services(tmp_path, max_running_turns=2) as services:
        known = await ask(services, "hello", idempotency_key="k")
        turns = [await send(services, HANG) for _ in range(2)]
        with pytest.raises(Overloaded) as told:
            await send(services, "hello")
        with pytest.raises(Overloaded):
            await send(services, "hello", known["conversation_id"], new_conversation=True)
        assert await ask(services, "hello", idempotency_key="k") == known
        page, _ = await services.chat.page(ME, limit=50, cursor=None, query=None)
        for one in turns:
            await services.chat.interrupt(ME, one.conversation_id)
            await result_of(services, one)
        assert (await ask(services, "hello"))["outcome"] == "answered"
    assert told.value.retry_after_s
    assert len(page) == 3


async def test_the_bound_on_turns_holds_for_messages_that_come_at_once(tmp_path: Path) -> None:
    told: list[str] = []

    async def post(services: Services) -> None:
        try:
            await send(services, HANG)
            told.append("accepted")
        except Overloaded:
            told.append("refused")

    async with running_services(tmp_path, max_running_turns=3) as services:
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(post, services)
        assert services.lanes.running_count + services.lanes.queued_count == 3
        page, _ = await services.chat.page(ME, limit=50, cursor=None, query=None)
        for one in page:
            await services.chat.interrupt(ME, one.conversation.id)
    assert sorted(told) == ["accepted"] * 3 + ["refused"] * 7


async def test_a_shutdown_lets_turns_finish_in_the_grace_and_ends_the_others_honestly(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path, shutdown_grace_s=0.5) as services:
        quick = await send(services, script({"text": "I get to say it all.", "delta_delay_ms": 5}))
        endless = await send(services, HANG)
        await begun(services, quick)
        await begun(services, endless)
        queued = await send(services, "hello", endless.conversation_id)
        told: list[object] = []

        async def wait_for_the_queued_one(chat: Chat) -> None:
            try:
                told.append(await chat.result(ME, queued.turn_id))
            except ShuttingDown as refused:
                told.append(refused)

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait_for_the_queued_one, services.chat)
                await anyio.wait_all_tasks_blocked()
                await services.chat.shut_down(grace_s=0.5)
        finished = await result_of(services, quick)
        ended = await result_of(services, endless)
        with pytest.raises(ShuttingDown):
            await send(services, "hello")
    assert finished["reply"] == "I get to say it all."
    assert (ended["outcome"], ended["stop_reason"]) == ("interrupted", "user_interrupt")
    assert "The server was shut down" in ended["reply"]
    assert isinstance(told[0], ShuttingDown)
    async with running_services(tmp_path) as services:
        result = await result_of(services, queued)
        events = await events_of(services, queued)
    assert result["outcome"] == "answered"
    assert kinds(events).count("turn.completed") == 1
    assert [one.n for one in events] == list(range(1, len(events) + 1))
