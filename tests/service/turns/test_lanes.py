"""Turns in their lanes, and what is accepted while the server closes."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.chat import Chat
from gateway.conversations.sql.conversations import ConversationStore
from gateway.errors import Overloaded, ShuttingDown
from gateway.ids import LOCAL_USER as ME
from gateway.ids import UserId
from gateway.turns.worktrees import Worktrees
from memory.errors import StoreUnavailable
from tests.support.engine_talk import until
from tests.support.services import HANG, hold_calls, kinds, running_services, script


async def test_turns_of_a_conversation_run_in_order_one_at_a_time(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        first = await services.send(script({"text": "one two three", "delta_delay_ms": 5}))
        others = [
            await services.send(script({"text": f"answer {n}"}), first.conversation_id)
            for n in range(4)
        ]
        results = [await services.result_of(item) for item in (first, *others)]
        async with await services.chat.reader.follow(
            ME, first.conversation_id, f"{first.turn_id}:0"
        ) as subscription:
            seen = []
            while more := await subscription.next(0):
                seen += more
    bounds = ("turn.started", "turn.completed")
    told = [(event.type, event.turn_id) for event in seen if event.type in bounds]
    assert told == [(kind, item.turn_id) for item in (first, *others) for kind in bounds]
    assert [result["reply"] for result in results[1:]] == [f"answer {n}" for n in range(4)]


async def test_a_turn_that_cannot_be_read_when_its_time_comes_waits_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stored, and nothing but its server would ever begin it."""
    monkeypatch.setattr("gateway.turns.runner._READ_AGAIN_S", 0.01)
    async with running_services(tmp_path) as services:
        first = await services.send(HANG)
        second = await services.send(script({"text": "My turn."}), first.conversation_id)
        away = StoreUnavailable("The database cannot be read.")
        held = hold_calls(monkeypatch, Worktrees.open, failure=away, once=True)
        held.let_go.set()
        await services.stop(first)
        assert (await services.result_of(second))["reply"] == "My turn."
        assert held.came.is_set()


async def test_too_many_turns_are_refused_and_nothing_of_them_is_kept(tmp_path: Path) -> None:
    async with running_services(tmp_path, max_running_turns=2) as services:
        known = await services.ask("hello", idempotency_key="k")
        turns = [await services.send(HANG) for _ in range(2)]
        with pytest.raises(Overloaded) as told:
            await services.send("hello")
        with pytest.raises(Overloaded):
            await services.send("hello", known["conversation_id"], new_conversation=True)
        assert await services.ask("hello", idempotency_key="k") == known
        page = await services.views()
        for turn in turns:
            await services.stop(turn)
        assert (await services.ask("hello"))["outcome"] == "answered"
    assert told.value.retry_after_s
    assert len(page) == 3


async def test_a_shutdown_lets_turns_finish_in_the_grace_and_ends_the_others_honestly(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path, shutdown_grace_s=2) as services:
        quick = await services.send(script({"text": "I get to say it all.", "delta_delay_ms": 5}))
        endless = await services.send(HANG)
        await services.begun(quick)
        await services.begun(endless)
        queued = await services.send(script({"echo": "context"}), endless.conversation_id)
        refused: list[dict[str, Any]] = []

        async def wait_for_the_queued_one(chat: Chat) -> None:
            with pytest.raises(ShuttingDown) as caught:
                await chat.reader.result(ME, queued.turn_id)
            refused.append(caught.value.body("req_1")["error"])

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait_for_the_queued_one, services.chat)
                await anyio.wait_all_tasks_blocked()
                await services.chat.intake.shut_down(grace_s=2)
        finished = await services.result_of(quick)
        ended = await services.result_of(endless)
        with pytest.raises(ShuttingDown):
            await services.send("hello")
    assert finished["reply"] == "I get to say it all."
    assert (ended["outcome"], ended["stop_reason"]) == ("interrupted", "shutdown")
    assert ended["cause"] == "shutdown"
    assert "The server was shut down" in ended["reply"]
    assert [(one["code"], one["retryable"]) for one in refused] == [("shutting_down", False)]
    assert refused[0]["details"]["turn_id"] == queued.turn_id
    async with running_services(tmp_path) as services:
        result = await services.result_of(queued)
        events = await services.events_of(queued)
        chronicle = services.open_memory.chronicle
        told = [intent.text for intent in await chronicle.intents_of_turn(endless.turn_id)]
    assert result["outcome"] == "answered"
    for text in (result["reply"], "\n".join(told)):
        assert "(interrupted, shutdown). The server was stopped, which ended it." in text
        assert "The person did not interrupt it" in text
        assert "user_interrupt" not in text
    assert kinds(events).count("turn.completed") == 1
    assert [event.n for event in events] == list(range(1, len(events) + 1))


async def test_what_the_server_does_is_told_without_what_is_anothers(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        running = await services.begin()
        queued = await services.send("later", running.conversation_id)
        mine = await services.chat.operations.snapshot(ME)
        theirs = await services.chat.operations.snapshot(UserId("bob"))
        await services.interrupt(running.conversation_id)
        await services.result_of(queued)
    counts = {"live": 1, "asleep": 0, "running_turns": 1, "queued_turns": 1}
    assert mine["conversations"] == theirs["conversations"] == counts
    (process,), (unnamed,) = mine["processes"], theirs["processes"]
    assert (process["conversation_id"], process["state"]) == (running.conversation_id, "working")
    assert (unnamed["conversation_id"], unnamed["title"]) == (None, None)


WAIT_S = 20


async def test_a_message_that_was_being_looked_at_when_the_server_closed_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path) as services:
        conversation_id = (await services.ask("hello"))["conversation_id"]
        refused: list[bool] = []

        async def send_late() -> None:
            with pytest.raises(ShuttingDown):
                await services.send("too late", conversation_id)
            refused.append(True)

        held = hold_calls(monkeypatch, ConversationStore.get)
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send_late)
                await held.came.wait()
                tasks.start_soon(partial(services.chat.intake.shut_down, grace_s=0))
                await until(lambda: services.chat.intake.is_closed)
                held.let_go.set()
        messages = await services.messages_of(conversation_id)
    assert refused == [True]
    assert [message.message for message in messages] == ["hello"]
