"""Leaving, forking and deleting conversations."""

from pathlib import Path

import anyio
import pytest

from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.sql.turns import TurnStore
from gateway.errors import Conflict, NotFound
from gateway.ids import LOCAL_USER as ME
from gateway.ids import ConversationId
from gateway.turns.requests import Accepted
from tests.support.scripted_engine import ScriptedEngine
from tests.support.services import HANG, RunningServices, hold_calls, running_services, script

ECHO = script({"echo": "messages"})


async def test_a_conversation_that_is_left_finishes_nothing_more(tmp_path: Path) -> None:
    async with running_services(tmp_path, stale_client_grace_s=0) as services:
        running = await services.begin()
        left = running.conversation_id
        queued = await services.send("hello", left)
        fresh = await services.create(leaving=left)
        result, waiting = await services.result_of(running), await services.result_of(queued)
        assert not (await services.view(left)).hot
        remembered = await services.ask(ECHO, fresh)
        messages = await services.messages_of(left)
        services.assert_nothing_is_left()
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert "This conversation was left" in result["reply"]
    assert waiting["outcome"] == "interrupted"
    assert "it was not run" in waiting["reply"]
    assert "I begin" not in remembered["reply"]
    assert [message.id for message in messages] == [running.turn_id, queued.turn_id]


async def test_a_message_can_leave_its_conversation_and_be_answered_in_a_fresh_one(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path) as services:
        first = await services.ask("the secret word is tea")
        second = await services.ask(ECHO, first["conversation_id"], new_conversation=True)
        third = await services.ask(ECHO, first["conversation_id"])
    assert second["conversation_id"] != first["conversation_id"]
    assert "tea" not in second["reply"]
    assert "tea" in third["reply"], "the old one remembers still"


async def test_deleting_ends_what_runs_and_waits_and_forgets_the_session(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        running = await services.begin()
        conversation_id = running.conversation_id
        queued = await services.send("hello", conversation_id)
        with anyio.fail_after(30):
            await services.delete(conversation_id)
        for accepted in (running, queued):
            with pytest.raises(NotFound):
                await services.result_of(accepted)
        for call in (services.view, services.delete, services.interrupt):
            with pytest.raises(NotFound):
                await call(conversation_id)
        assert services.scripted.clients == []
        assert services.scripted.sessions == {}
        services.assert_nothing_is_left()


async def test_a_message_that_is_being_written_down_when_its_conversation_is_deleted_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Accepted] = []
    async with running_services(tmp_path) as services:
        first = await services.ask("hello")
        conversation_id = first["conversation_id"]
        held = hold_calls(monkeypatch, TurnStore.accept)

        async def post() -> None:
            told.append(await services.send("hello", conversation_id))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(post)
                await held.came.wait()
                tasks.start_soon(services.delete, conversation_id)
                await anyio.wait_all_tasks_blocked()
                held.let_go.set()
        with pytest.raises(NotFound):
            await services.result_of(told[0])
        assert services.scripted.sessions == {}
        services.assert_nothing_is_left()


async def test_a_fork_remembers_up_to_the_turn_and_shows_the_history_until_then(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path) as services:
        first = await services.ask("one")
        conversation_id = first["conversation_id"]
        second = await services.ask("two", conversation_id)
        await services.ask("three", conversation_id)
        fork_id = await services.fork(conversation_id, second["turn_id"])
        copied = await services.messages_of(fork_id)
        forked = await services.ask(ECHO, fork_id)
        again = await services.ask(ECHO, fork_id)
        original = await services.ask(ECHO, conversation_id)
    assert [turn.message for turn in copied] == ["one", "two"]
    assert all(turn.result and turn.result["conversation_id"] == fork_id for turn in copied)
    assert "two" in forked["reply"]
    assert "three" not in forked["reply"]
    assert again["reply"].count("echo") == 2
    assert "three" in original["reply"]
    assert original["reply"].count("echo") == 1


async def test_a_fork_is_made_of_turns_that_are_completed_alone(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        running = await services.send(HANG)
        with pytest.raises(Conflict) as told:
            await services.fork(running.conversation_id, running.turn_id)
        other = await services.ask("hello")
        with pytest.raises(NotFound):
            await services.fork(running.conversation_id, other["turn_id"])
        await services.interrupt(running.conversation_id)
    assert told.value.specific_code == "turn_not_finished"


READ = {"tool": "Bash", "input": {"command": "cat a.txt"}}


async def cut_off(services: RunningServices) -> str:
    """Return a conversation whose next prompt is to report a turn that was cut off."""
    running = await services.begin(script(READ, {"text": "x"}, {"hang": True}))
    await services.stop(running)
    assert await waiting(services, running.conversation_id) == 1
    return running.conversation_id


async def waiting(services: RunningServices, conversation_id: str) -> int:
    """Count what waits for a conversation's next prompt."""
    return len(await services.open_memory.chronicle.pending(conversation_id, ME))


async def test_a_deletion_that_failed_half_way_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path) as services:
        conversation_id = await cut_off(services)
        failure = OSError("the disk failed")
        held = hold_calls(monkeypatch, ScriptedEngine.forget_session, failure=failure)
        held.let_go.set()
        for _ in range(2):
            with pytest.raises(OSError, match="the disk failed"):
                await services.delete(conversation_id)
            assert (await services.view(conversation_id)).state == "idle"
        monkeypatch.undo()
        await services.delete(conversation_id)
        assert services.scripted.sessions == {}
        assert await waiting(services, conversation_id) == 0
        with pytest.raises(NotFound):
            await services.view(conversation_id)


async def test_a_deletion_that_a_crash_cut_off_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    async with running_services(before) as services:
        conversation_id = await cut_off(services)
        held = hold_calls(monkeypatch, ConversationStore.delete, once=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(services.delete, conversation_id)
            with anyio.fail_after(30):
                await held.came.wait()
            await services.copy_as_after_a_crash(after)
            sessions = services.same_sessions()
            tasks.cancel_scope.cancel()
    async with running_services(after, make_engine=sessions) as services:
        assert services.scripted.sessions == {}
        await services.delete(conversation_id)
        with pytest.raises(NotFound):
            await services.view(conversation_id)


async def test_nothing_is_forked_that_is_being_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path) as services:
        first = await services.ask("hello")
        conversation_id = ConversationId(first["conversation_id"])
        held = hold_calls(monkeypatch, TurnStore.fork_point)
        refused: list[bool] = []

        async def fork() -> None:
            with pytest.raises(NotFound):
                await services.fork(conversation_id, first["turn_id"])
            refused.append(True)

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(fork)
                await held.came.wait()
                await services.delete(conversation_id)
                held.let_go.set()
        listed = await services.views()
    assert (refused, listed) == ([True], [])
