"""A conversation is left, deleted or branched off, whatever runs and waits in it."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.conversations.model import Turn
from gateway.conversations.sqlite.turns import SqliteTurnStore
from gateway.errors import Conflict, NotFound
from gateway.ids import LOCAL_USER as ME
from gateway.turns.requests import Accepted
from tests.support.services import (
    HANG,
    ask,
    assert_nothing_is_left,
    begun,
    messages_of,
    result_of,
    running_services,
    script,
    scripted_engine,
    send,
)

ECHO = script({"echo": "messages"})


async def test_a_conversation_that_is_left_finishes_nothing_more(tmp_path: Path) -> None:
    async with running_services(tmp_path, stale_client_grace_s=0) as services:
        running = await send(services, HANG)
        left = running.conversation_id
        await begun(services, running)
        queued = await send(services, "hello", left)
        fresh = await services.chat.conversations.create(ME, leaving=left)
        result, waiting = await result_of(services, running), await result_of(services, queued)
        assert not (await services.chat.conversations.get(ME, left)).hot
        remembered = await ask(services, ECHO, fresh)
        messages = await messages_of(services, left)
        assert_nothing_is_left(services)
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
        first = await ask(services, "the secret word is tea")
        second = await ask(services, ECHO, first["conversation_id"], new_conversation=True)
        third = await ask(services, ECHO, first["conversation_id"])
    assert second["conversation_id"] != first["conversation_id"]
    assert "tea" not in second["reply"]
    assert "tea" in third["reply"], "the old one remembers still"


async def test_deleting_ends_what_runs_and_waits_and_forgets_the_session(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        running = await send(services, HANG)
        conversation_id = running.conversation_id
        await begun(services, running)
        queued = await send(services, "hello", conversation_id)
        with anyio.fail_after(30):
            await services.chat.conversations.delete(ME, conversation_id)
        for accepted in (running, queued):
            with pytest.raises(NotFound):
                await result_of(services, accepted)
        for call in (
            services.chat.conversations.get,
            services.chat.conversations.delete,
            services.chat.intake.interrupt,
        ):
            with pytest.raises(NotFound):
                await call(ME, conversation_id)
        assert scripted_engine(services).clients == []
        assert scripted_engine(services).sessions == {}
        assert_nothing_is_left(services)


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

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(post)
                await writing.wait()
                tasks.start_soon(services.chat.conversations.delete, ME, conversation_id)
                await anyio.wait_all_tasks_blocked()
                go_on.set()
        with pytest.raises(NotFound):
            await result_of(services, told[0])
        assert scripted_engine(services).sessions == {}
        assert_nothing_is_left(services)


async def test_a_fork_remembers_up_to_the_turn_and_shows_the_history_until_then(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path) as services:
        first = await ask(services, "one")
        conversation_id = first["conversation_id"]
        second = await ask(services, "two", conversation_id)
        await ask(services, "three", conversation_id)
        fork_id = await services.chat.conversations.fork(ME, conversation_id, second["turn_id"])
        copied = await messages_of(services, fork_id)
        forked = await ask(services, ECHO, fork_id)
        again = await ask(services, ECHO, fork_id)
        original = await ask(services, ECHO, conversation_id)
    assert [turn.message for turn in copied] == ["one", "two"]
    assert all(
        each_turn.result and each_turn.result["conversation_id"] == fork_id for each_turn in copied
    )
    assert "two" in forked["reply"]
    assert "three" not in forked["reply"]
    assert again["reply"].count("echo") == 2
    assert "three" in original["reply"]
    assert original["reply"].count("echo") == 1


async def test_a_fork_is_made_of_turns_that_are_completed_alone(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        running = await send(services, HANG)
        with pytest.raises(Conflict) as told:
            await services.chat.conversations.fork(ME, running.conversation_id, running.turn_id)
        other = await ask(services, "hello")
        with pytest.raises(NotFound):
            await services.chat.conversations.fork(ME, running.conversation_id, other["turn_id"])
        await services.chat.intake.interrupt(ME, running.conversation_id)
    assert told.value.specific_code == "turn_not_finished"
