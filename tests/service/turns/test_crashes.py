"""Turns after a crash of the server."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.conversations.model import COMPLETED, Decision, TurnEvent
from gateway.conversations.schedules import ScheduledRun
from gateway.conversations.sql.events import EventStore
from gateway.conversations.sql.turns import TurnStore
from gateway.ids import LOCAL_USER as ME
from gateway.ids import new_schedule_id
from gateway.turns.requests import Accepted
from memory.errors import StoreConflict
from memory.facts.keeper import FactKeeper
from memory.intents.chronicle import IntentRecord, Recording, SqlChronicle
from memory.items.scope import Scope
from tests.support.builders import REMEMBERED, Memory, codes
from tests.support.services import (
    HANG,
    Held,
    RunningServices,
    hold_calls,
    kinds,
    of_kind,
    running_services,
    script,
)

READ = {"tool": "Bash", "input": {"command": "cat a.txt"}}
WRITE = {"tool": "Write", "input": {"file_path": "b.txt", "content": "x"}}
DID = script(READ, {"text": "We decided to keep the otter list in a.txt."})
WAIT_S = 20


async def intents_of(services: RunningServices, accepted: Accepted) -> list[IntentRecord]:
    return list(await services.open_memory.chronicle.intents_of_turn(accepted.turn_id))


def has_the_last_event(_: object, events: Sequence[TurnEvent]) -> bool:
    return COMPLETED in kinds(events)


def has_the_last_intent(recordings: Sequence[Recording], *_: object) -> bool:
    return any(recording.key == COMPLETED for recording in recordings)


@asynccontextmanager
async def crashed_when(
    held: Held, message: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[RunningServices, Accepted, dict[str, Any]]]:
    """Crash where a turn is held; gives the server of after it, the turn, and its result without a crash."""
    before, after = root / "before", root / "after"
    async with running_services(before) as services:
        accepted = await services.send(message)
        with anyio.fail_after(WAIT_S):
            await held.came.wait()
        await services.copy_as_after_a_crash(after)
        held.let_go.set()
        meant = await services.result_of(accepted)
        sessions = services.same_sessions()
    monkeypatch.undo()
    async with running_services(after, make_engine=sessions) as services:
        yield services, accepted, meant


@pytest.mark.parametrize(
    "held_call",
    [(SqlChronicle.record, has_the_last_intent), (TurnStore.finish, has_the_last_event)],
    ids=["chronicle", "last_event"],
)
@pytest.mark.parametrize("message", [DID, script({"status": 401})], ids=["done", "refused"])
async def test_a_turn_that_had_ended_before_the_crash_is_told_as_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_call: Any, message: str
) -> None:
    """Whatever of it was told when the server died: the chronicle and the log are where it shows."""
    held = hold_calls(monkeypatch, *held_call)
    async with crashed_when(held, message, tmp_path, monkeypatch) as (services, accepted, meant):
        told = await services.result_of(accepted)
        events = await services.events_of(accepted)
        lines = await services.journal_of(told)
        intents = await intents_of(services, accepted)
        waiting = await services.open_memory.chronicle.pending(accepted.conversation_id, ME)
        turns = await services.messages_of(accepted.conversation_id)
    assert told == meant
    assert of_kind(events, COMPLETED) == [told]
    assert [event.n for event in events] == list(range(1, len(events) + 1))
    assert kinds(events).count("tool.finished") == len(told["tools"])
    responses = [line for line in lines if line["kind"] == "response"]
    assert [response["reply"] for response in responses] == [told["reply"]]
    assert lines[-1]["kind"] == "response"
    assert ("error", "server") not in [(line["kind"], line.get("where")) for line in lines]
    by_key = {intent.key: intent for intent in intents}
    assert len(by_key) == len(intents)
    assert by_key[COMPLETED].payload["outcome"] == told["outcome"]
    was_cut_off = told["outcome"] == "engine_failed"
    assert ("turn.cut_off" in by_key, len(waiting)) == (was_cut_off, was_cut_off)
    assert [turn.session_id for turn in turns] == [told["session_id"]]


async def crashed_in_mid_turn(root: Path, message: str = HANG, **change: Any) -> Accepted:
    """Leave below `root/after` what a server leaves that dies in mid-turn."""
    async with running_services(root / "before") as services:
        conversation_id = await services.create()
        await services.change(conversation_id, **change)
        accepted = await services.begin(message, conversation_id)
        await services.copy_as_after_a_crash(root / "after")
        await services.interrupt(conversation_id)
    return accepted


async def test_a_turn_that_a_crash_cut_off_is_remembered_under_its_conversations_labels(
    tmp_path: Path,
) -> None:
    message = script(WRITE, {"text": "x"}, {"hang": True})
    accepted = await crashed_in_mid_turn(tmp_path, message, app_code="ocean", environment="prod")
    async with running_services(tmp_path / "after") as services:
        result = await services.result_of(accepted)
        keys = [intent.key for intent in await intents_of(services, accepted)]
        memory = services.open_memory
        await memory.episode_worker.drain()
        (episode,) = await memory.items.newest(Scope(owner_id=ME), kinds=["episode"], limit=9)
        (waiting,) = await memory.chronicle.pending(accepted.conversation_id, ME)
    assert result["stop_reason"] == "engine_crash"
    assert keys[0] == "turn.received"
    assert {"tool.Write.ok", "turn.cut_off", "turn.completed"} <= set(keys)
    assert len(keys) == len(set(keys))
    assert (episode.scope.app_code, episode.scope.environment) == ("ocean", "prod")
    assert "cut off (engine_failed, engine_crash). The server stopped unexpectedly" in waiting.text


async def test_a_crash_remembers_nothing_of_a_conversation_without_memory(tmp_path: Path) -> None:
    message = script(READ, {"text": "x"}, {"hang": True})
    accepted = await crashed_in_mid_turn(tmp_path, message, memory_enabled=False)
    async with running_services(tmp_path / "after") as services:
        told = await services.result_of(accepted)
        assert await intents_of(services, accepted) == []
        waiting = await services.open_memory.chronicle.pending(accepted.conversation_id, ME)
    assert told["stop_reason"] == "engine_crash"
    assert list(waiting) == []


async def test_what_a_crash_keeps_out_of_memory_is_told(tmp_path: Path) -> None:
    accepted = await crashed_in_mid_turn(tmp_path)
    data = tmp_path / "after" / "data"
    for path in data.glob("memory.sqlite3*"):
        path.unlink()
    (data / "memory.sqlite3").write_bytes(b"no database at all")
    async with running_services(tmp_path / "after") as services:
        told = await services.result_of(accepted)
        events = await services.events_of(accepted)
    assert codes(told["notices"]) == codes(of_kind(events, "notice")) == ["memory_not_written"]


@pytest.mark.parametrize("answer", ["allow", "deny"])
async def test_a_call_that_nobody_had_allowed_at_the_crash_did_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Decision
) -> None:
    """One that was allowed may have run: nothing that is stored tells."""
    before, after = tmp_path / "before", tmp_path / "after"
    async with running_services(before, approvals="on") as services:
        held = hold_calls(
            monkeypatch, EventStore.append, lambda events: "tool.finished" in kinds(events)
        )
        accepted = await services.send(script(WRITE, {"hang": True}))
        question = await services.question_of(accepted)
        await services.answer(question, answer)
        with anyio.fail_after(WAIT_S):
            await held.came.wait()
        await services.copy_as_after_a_crash(after)
        held.let_go.set()
        await services.interrupt(accepted.conversation_id)
    monkeypatch.undo()
    async with running_services(after, approvals="on") as services:
        result = await services.result_of(accepted)
        events = await services.events_of(accepted)
        assert await services.asked() == []
    by = [item["by"] for item in of_kind(events, "approval.resolved")]
    assert by == ["user"]
    (tool,) = result["tools"]
    (finished,) = of_kind(events, "tool.finished")
    assert (finished["status"], finished["error"]) == (tool["status"], tool["error"])
    if answer == "allow":
        assert tool["status"] == "unknown"
        assert "whether it took effect is not known" in result["reply"]
    else:
        assert tool["status"] == "denied"
        assert "it did not run" in tool["error"]
        assert tool["error"] in result["reply"]
        assert codes(result["notices"]) == ["tools_failed"]
        assert "not known" not in result["reply"]


async def test_a_call_to_forget_that_never_came_back_may_have_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, after = "forget my locker", tmp_path / "after"
    given = {"ids": ["fac_none"], "evidence": words}
    call = {"tool": "mcp__memory__memory_forget", "input": given}
    async with running_services(tmp_path / "before") as services:
        held = hold_calls(
            monkeypatch, EventStore.append, lambda events: "tool.finished" in kinds(events)
        )
        accepted = await services.send(f"{words}\n{script(call, {'hang': True})}")
        with anyio.fail_after(WAIT_S):
            await held.came.wait()
        await services.copy_as_after_a_crash(after)
        held.let_go.set()
        await services.interrupt(accepted.conversation_id)
    monkeypatch.undo()
    async with running_services(after) as services:
        result = await services.result_of(accepted)
    assert [tool["status"] for tool in result["tools"]] == ["unknown"]
    assert "nothing_forgotten" not in codes(result["notices"])


LS = {"tool": "Bash", "input": {"command": "ls"}}


async def test_after_a_crash_a_running_turn_is_told_with_its_evidence_and_queued_ones_run(
    tmp_path: Path,
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    async with running_services(before, memory=Memory(REMEMBERED)) as services:
        first = await services.ask("hello")
        conversation_id = first["conversation_id"]
        message = script(LS, {"text": "I have listed "}, {"hang": True})
        running = await services.begin(message, conversation_id)
        queued = await services.send(script({"echo": "messages"}), conversation_id)
        last = await services.send("hello", conversation_id)
        await services.events_of(last, until="turn.queued")
        await services.copy_as_after_a_crash(after)
        sessions = services.same_sessions()
        await services.interrupt(conversation_id)
    async with running_services(after, make_engine=sessions) as services:
        told = await services.result_of(running)
        results = [await services.result_of(item) for item in (queued, last)]
        events = [await services.events_of(each_item) for each_item in (running, queued, last)]
        lines = await services.journal_of(told)
        view = await services.view(conversation_id)
        async with await services.chat.reader.follow(ME, conversation_id) as subscription:
            everything = await subscription.next(5)
        services.assert_nothing_is_left()
    assert (told["outcome"], told["stop_reason"]) == ("engine_failed", "engine_crash")
    assert told["reply"].startswith("I have listed\n\nThe server stopped unexpectedly")
    assert [tool["status"] for tool in told["tools"]] == ["ok"]
    assert told["memory"]["injected"][0]["id"] == "epi_1"
    assert [result["outcome"] for result in results] == ["answered"] * 2
    assert "hello" in results[0]["reply"], "the session was resumed"
    for each_event in events:
        assert kinds(each_event).index("turn.completed") == len(each_event) - 1
        assert [event.n for event in each_event] == list(range(1, len(each_event) + 1))
    assert [entry.seq for entry in everything] == sorted({element.seq for element in everything})
    assert (view.state, list(view.queue)) == ("idle", [])
    assert (lines[-1]["kind"], lines[-1]["outcome"]) == ("response", "engine_failed")
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))


@pytest.mark.parametrize("fault", [StoreConflict("It contradicts."), RuntimeError("broken")])
async def test_a_turn_that_a_crash_cut_off_ends_although_memory_fails_as_it_keeps_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    async def fail(*_: object, **__: object) -> None:  # noqa: RUF029  as `conclude`
        raise fault

    accepted = await crashed_in_mid_turn(tmp_path)
    monkeypatch.setattr(FactKeeper, "conclude", fail)
    async with running_services(tmp_path / "after") as services:
        with anyio.fail_after(WAIT_S):
            result = await services.result_of(accepted)
    assert (result["outcome"], result["cause"]) == ("engine_failed", "crashed")


async def test_a_crash_of_the_restart_itself_changes_nothing(tmp_path: Path) -> None:
    roots = [tmp_path / str(n) for n in range(3)]
    async with running_services(roots[0]) as services:
        accepted = await services.begin()
        await services.copy_as_after_a_crash(roots[1])
    async with running_services(roots[1]) as services:
        told = await services.result_of(accepted)
        await services.copy_as_after_a_crash(roots[2])
    async with running_services(roots[2]) as services:
        assert await services.result_of(accepted) == told
        events = await services.events_of(accepted)
    assert kinds(events).count("turn.completed") == 1


async def test_a_message_that_was_taken_back_stays_so(tmp_path: Path) -> None:
    taken = 0
    async with running_services(tmp_path, shutdown_grace_s=0) as services:
        running = await services.send(HANG)
        conversation_id = running.conversation_id
        await services.begun(running)
        queued = [await services.send("hello", conversation_id) for _ in range(2)]
        await services.chat.intake.take_back(ME, conversation_id, queued[taken].turn_id)
    async with running_services(tmp_path) as services:
        results = [await services.result_of(accepted) for accepted in queued]
    assert results[taken]["reply"] == "This message was taken back before it was answered."
    assert results[1 - taken]["outcome"] == "answered"


async def test_missed_runs_are_told_though_the_crash_came_before_the_turn_had_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ScheduledRun(schedule_id=new_schedule_id(), name="Daily", due_at=None, missed=2)
    held = hold_calls(monkeypatch, EventStore.append, lambda events: "notice" in kinds(events))
    async with running_services(tmp_path / "before") as services:
        accepted = await services.send(script({"text": "x"}), schedule=run)
        with anyio.fail_after(WAIT_S):
            await held.came.wait()
        await services.copy_as_after_a_crash(tmp_path / "after")
        held.let_go.set()
        assert codes((await services.result_of(accepted))["notices"]) == ["runs_missed"]
    async with running_services(tmp_path / "after") as services:
        told = await services.result_of(accepted)
        events = await services.events_of(accepted)
    assert told["stop_reason"] == "engine_crash"
    assert codes(told["notices"]) == codes(of_kind(events, "notice")) == ["runs_missed"]
