"""Approvals that outlive the run that asked: after a restart, and after their time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.conversations.sql.events import EventStore
from gateway.errors import Conflict, NotFound, UnprocessableEntity
from gateway.ids import LOCAL_USER as ME
from gateway.ids import TurnId
from gateway.turns.requests import Accepted
from tests.support.services import (
    HANG,
    RunningServices,
    hold_calls,
    kinds,
    of_kind,
    running_services,
    script,
)

RM = {"tool": "Bash", "input": {"command": "rm a.txt"}}
DONE = {"text": "Done."}


@asynccontextmanager
async def restarted(
    root: Path, *, is_crash: bool = False, message: str = "", **settings: Any
) -> AsyncIterator[tuple[RunningServices, Accepted, dict[str, Any]]]:
    """Services after a restart while an approval was pending, of `rm a.txt` if nothing else is said."""
    after = root / "after" if is_crash else root
    async with running_services(root, approvals="on", shutdown_grace_s=0) as services:
        accepted = await services.send(message or script(RM, DONE))
        question = await services.question_of(accepted)
        if is_crash:
            await services.copy_as_after_a_crash(after)
        sessions = services.same_sessions()
    settings = {"approvals": "on", **settings}
    async with running_services(after, make_engine=sessions, **settings) as services:
        yield services, accepted, question


def run_of(accepted: Accepted, turn_id: TurnId | None) -> Accepted:
    """Return the run that an answer started."""
    assert turn_id is not None
    return Accepted(conversation_id=accepted.conversation_id, turn_id=turn_id)


def has_file(services: RunningServices) -> bool:
    return (services.settings.workspace / "a.txt").exists()


@pytest.mark.parametrize("is_crash", [True, False])
async def test_after_a_restart_a_yes_runs_the_call_once(tmp_path: Path, *, is_crash: bool) -> None:
    async with restarted(tmp_path, is_crash=is_crash) as (services, accepted, question):
        told = await services.result_of(accepted)
        (listed,) = await services.asked()
        assert has_file(services)
        turn_id = await services.answer(question, "allow", message="Go on.")
        with pytest.raises(Conflict):
            await services.answer(question, "allow")
        run = run_of(accepted, turn_id)
        result = await services.result_of(run)
        events = await services.events_of(run)
        lines = await services.journal_of(result)
        assert not has_file(services)
        assert await services.asked() == []
        messages = await services.messages_of(accepted.conversation_id)
    assert (told["outcome"], told["stop_reason"], told["cause"]) == (
        "interrupted",
        "waiting",
        "waiting",
    )
    assert "Your answer starts the agent again" in told["reply"]
    assert [tool["status"] for tool in told["tools"]] == ["interrupted"]
    assert [step for step in told["steps"] if step["type"] == "approval"] == [
        {
            "type": "approval",
            "approval_id": question["approval_id"],
            "index": 1,
            "decision": None,
            "by": None,
            "state": "waiting",
        }
    ]
    assert (listed["state"], listed["expires_at"], listed["permits"]) == ("waiting", None, [])
    assert listed["input"] == {"command": "rm -- a.txt"}
    assert "the agent is started again and makes this call again" in listed["reason"]
    (tool,) = result["tools"]
    allowed_by = tool["allowed_by"]
    assert (allowed_by["by"], allowed_by["approval_id"]) == ("person", question["approval_id"])
    assert (result["outcome"], tool["status"]) == ("answered", "ok")
    (resolved,) = of_kind(events, "approval.resolved")
    assert (resolved["approval_id"], resolved["decision"]) == (question["approval_id"], "allow")
    assert resolved["allowed_by"] == allowed_by
    (permission,) = [line for line in lines if line["kind"] == "permission"]
    assert permission["allowed_by"] == allowed_by
    assert "exactly this call" in lines[0]["prompt"]
    assert "They said: Go on." in lines[0]["prompt"]
    assert messages[-1].message == "Allowed: Bash: rm -- a.txt\nGo on."


async def test_after_a_restart_a_no_leaves_the_call_undone_and_a_word_is_told(
    tmp_path: Path,
) -> None:
    async with restarted(tmp_path / "plain") as (services, accepted, question):
        assert await services.answer(question, "deny") is None
        with pytest.raises(Conflict):
            await services.answer(question, "allow")
        assert len(await services.messages_of(accepted.conversation_id)) == 1
        assert has_file(services)
    async with restarted(tmp_path / "word") as (services, accepted, question):
        turn_id = await services.answer(question, "deny", message="Keep it.")
        run = run_of(accepted, turn_id)
        result = await services.result_of(run)
        (line, *_) = await services.journal_of(result)
        assert has_file(services)
    assert "They said: Keep it." in line["prompt"]
    assert result["tools"] == []


WRITE = {"name": "Write", "input": {"file_path": "b.txt", "content": "x"}}
OTHER = {"name": "Write", "input": {"file_path": "b.txt", "content": "y"}}


async def test_a_yes_covers_its_call_once_and_no_other(tmp_path: Path) -> None:
    tools = {"tools": [OTHER, WRITE, WRITE]}
    message = script({"tools": [WRITE]}, DONE, {"on_followup": [tools]})
    async with restarted(tmp_path, message=message) as (services, accepted, question):
        turn_id = await services.answer(question, "allow")
        run = run_of(accepted, turn_id)
        asked = []
        for _ in range(2):
            asked.append(await services.pending_in(run))
            await services.answer(asked[-1], "deny")
        result = await services.result_of(run)
        assert (services.settings.workspace / "b.txt").read_text() == "x"
    assert [question["input"]["content"] for question in asked] == ["y", "x"]
    assert [tool["status"] for tool in result["tools"]] == ["denied", "ok", "denied"]
    yes = [tool["allowed_by"] for tool in result["tools"]]
    assert [bool(allowed_by) for allowed_by in yes] == [False, True, False]


async def test_a_message_meanwhile_runs_and_the_approval_still_waits(tmp_path: Path) -> None:
    async with restarted(tmp_path) as (services, accepted, question):
        told = await services.ask(script(DONE), accepted.conversation_id)
        assert (told["outcome"], has_file(services)) == ("answered", True)
        assert [one["state"] for one in await services.asked()] == ["waiting"]
        turn_id = await services.answer(question, "allow")
        await services.result_of(run_of(accepted, turn_id))
        assert not has_file(services)


async def test_an_approval_is_lost_when_the_same_call_is_asked_about_again(tmp_path: Path) -> None:
    async with restarted(tmp_path) as (services, accepted, question):
        again = await services.send(script(RM, DONE), accepted.conversation_id)
        asked = await services.question_of(again)
        listed = await services.asked()
        assert [one["state"] for one in listed] == ["pending", "lost"]
        assert "asked about the same call again" in listed[1]["reason"]
        with pytest.raises(Conflict):
            await services.answer(question, "allow")
        await services.answer(asked, "deny")
        assert (await services.result_of(again))["tools"][0]["status"] == "denied"
        assert has_file(services)


async def test_a_server_that_asks_no_more_says_so(tmp_path: Path) -> None:
    async with restarted(tmp_path, approvals="off") as (services, _, question):
        (listed,) = await services.asked()
        assert (listed["state"], "does not ask" in listed["reason"]) == ("lost", True)
        with pytest.raises(Conflict):
            await services.answer(question, "allow")
        assert has_file(services)


async def test_a_turn_that_waited_too_long_ends_as_waiting_and_a_later_yes_runs_the_call(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path, approvals="on", approval_timeout_s=0.05) as services:
        accepted = await services.send(script(RM, DONE))
        told = await services.result_of(accepted)
        events = await services.events_of(accepted)
        (listed,) = await services.asked()
        assert has_file(services)
        with pytest.raises(Conflict):
            await services.chat.approvals.extend(ME, listed["approval_id"])
        turn_id = await services.answer(listed, "allow")
        result = await services.result_of(run_of(accepted, turn_id))
        assert not has_file(services)
        services.assert_nothing_is_left()
    assert (told["outcome"], told["cause"]) == ("interrupted", "waiting")
    assert told["tools"][0]["error"] is None, "no denial"
    assert of_kind(events, "approval.resolved") == []
    assert listed["state"] == "waiting"
    assert result["outcome"] == "answered"


async def test_a_late_yes_for_the_whole_conversation_is_refused_by_the_name_of_its_field(
    tmp_path: Path,
) -> None:
    async with restarted(tmp_path) as (services, _, question):
        with pytest.raises(UnprocessableEntity, match="whole conversation") as refused:
            await services.answer(question, "allow", remember="conversation")
        assert refused.value.details == {"field": "remember"}
        assert [one["state"] for one in await services.asked()] == ["waiting"]


async def test_a_queued_run_that_is_taken_back_leaves_the_approval_as_it_was(
    tmp_path: Path,
) -> None:
    async with restarted(tmp_path) as (services, accepted, question):
        running = await services.begin(HANG, accepted.conversation_id)
        turn_id = await services.answer(question, "allow")
        assert await services.asked() == []
        await services.chat.intake.take_back(ME, accepted.conversation_id, str(turn_id))
        assert [one["state"] for one in await services.asked()] == ["waiting"]
        await services.stop(running)
        assert has_file(services)


async def test_a_yes_survives_a_restart_before_its_run_began(tmp_path: Path) -> None:
    async with restarted(tmp_path) as (services, accepted, question):
        await services.begin(HANG, accepted.conversation_id)
        turn_id = await services.answer(question, "allow")
        sessions = services.same_sessions()
    async with running_services(tmp_path, make_engine=sessions, approvals="on") as services:
        result = await services.result_of(run_of(accepted, turn_id))
        assert result["tools"][0]["status"] == "ok"


async def test_a_deleted_conversation_takes_its_approvals_along(tmp_path: Path) -> None:
    async with restarted(tmp_path) as (services, accepted, question):
        await services.delete(accepted.conversation_id)
        assert await services.asked() == []
        with pytest.raises(NotFound):
            await services.answer(question, "allow")
        assert has_file(services)


async def test_the_agents_questions_are_answered_after_a_restart(tmp_path: Path) -> None:
    asks = {"questions": [{"question": "Which colour?", "header": "Colour", "options": []}]}
    message = script({"tool": "AskUserQuestion", "input": asks}, DONE)
    async with restarted(tmp_path, message=message) as (services, accepted, question):
        (listed,) = await services.asked()
        assert listed["input"] == asks
        turn_id = await services.answer(question, "allow", answers={"Which colour?": "blue"})
        result = await services.result_of(run_of(accepted, turn_id))
        messages = await services.messages_of(accepted.conversation_id)
    (step,) = [step for step in result["steps"] if step["type"] == "approval"]
    assert step["answers"] == {"Which colour?": "blue"}
    assert messages[-1].message.endswith("Which colour? blue")


async def test_what_nobody_needs_any_more_is_not_kept(tmp_path: Path) -> None:
    """An input may hold a secret that only its look tells: it goes when the call is over."""
    async with running_services(tmp_path, approvals="on") as services:
        accepted = await services.send(script({"tools": [WRITE]}, DONE))
        question = await services.question_of(accepted)
        await services.answer(question, "allow")
        await services.result_of(accepted)
        with pytest.raises(Conflict):
            await services.chat.approvals.input(ME, question["approval_id"])
        desk = services.chat.approvals._parts.approvals  # noqa: SLF001
        kept = await desk.store.get(question["approval_id"], ME)
    assert kept is not None
    assert (kept.state, kept.input) == ("answered", {})


async def test_a_yes_that_was_stored_when_the_server_died_before_the_call_can_be_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call waits until readers are told of the yes, so it did not run."""
    before, after = tmp_path / "before", tmp_path / "after"
    async with running_services(before, approvals="on") as services:
        held = hold_calls(
            monkeypatch,
            EventStore.append,
            lambda events: "approval.resolved" in kinds(events),
        )
        accepted = await services.send(script(RM, DONE))
        question = await services.question_of(accepted)
        await services.answer(question, "allow")
        with anyio.fail_after(30):
            await held.came.wait()
        await services.copy_as_after_a_crash(after)
        sessions = services.same_sessions()
        held.let_go.set()
        await services.result_of(accepted)
    monkeypatch.undo()
    async with running_services(after, make_engine=sessions, approvals="on") as services:
        assert (await services.result_of(accepted))["cause"] == "waiting"
        turn_id = await services.answer(question, "allow")
        assert (await services.result_of(run_of(accepted, turn_id)))["outcome"] == "answered"
        assert not has_file(services)


async def test_readers_are_told_of_more_time(tmp_path: Path) -> None:
    async with running_services(tmp_path, approvals="on") as services:
        accepted = await services.send(script(RM, DONE))
        question = await services.question_of(accepted)
        expires_at = await services.chat.approvals.extend(ME, question["approval_id"])
        (extended,) = of_kind(
            await services.events_of(accepted, until="approval.extended"), "approval.extended"
        )
        await services.answer(question, "deny")
    assert expires_at >= question["expires_at"]
    assert (extended["approval_id"], extended["expires_at"]) == (
        question["approval_id"],
        expires_at,
    )
