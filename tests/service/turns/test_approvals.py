"""A person's word on a turn's tool calls, through Chat."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest

from gateway.errors import Conflict, NotFound
from gateway.ids import UserId
from gateway.turns import run_driver
from gateway.turns.approval_answer import Reply
from gateway.turns.requests import Accepted
from tests.service.turns.test_memory import intents_of
from tests.support.scripted_engine import ScriptedRun
from tests.support.services import RunningServices, kinds, of_kind, running_services, script

WRITE = {"tool": "Write", "input": {"file_path": "b.txt", "content": "x"}}
DONE = {"text": "Done."}


@asynccontextmanager
async def asking(
    root: Path, **settings: Any
) -> AsyncIterator[tuple[RunningServices, Accepted, dict[str, Any]]]:
    """Services with a turn that waits for a person's word on a call, and the question."""
    async with running_services(root, approvals="on", **settings) as services:
        accepted = await services.send(script(WRITE, DONE))
        yield services, accepted, await services.question_of(accepted)


class _Clock(ModuleType):
    """The watch's clock: it may go ahead of the true time, and sleeping takes one turn of the loop."""

    def __init__(self) -> None:
        super().__init__("clock")
        self.ahead_s = 0.0
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(anyio, name)

    def current_time(self) -> float:
        return anyio.current_time() + self.ahead_s

    async def sleep(self, seconds: float) -> None:
        self.looks += 1
        await anyio.sleep(0.01)


async def test_a_question_is_no_silence_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person may take longer than the model may be silent."""
    clock = _Clock()
    monkeypatch.setattr(run_driver, "anyio", clock)
    async with asking(tmp_path, model_silence_s=60.0) as (services, accepted, question):
        clock.ahead_s, seen = 120.0, clock.looks
        with anyio.fail_after(30):
            while clock.looks < seen + 3:  # noqa: ASYNC110  the watch has no event for it
                await anyio.sleep(0.01)
        clock.ahead_s = 0.0
        await services.answer(question, "allow")
        result = await services.result_of(accepted)
    assert (result["outcome"], result["notices"]) == ("answered", [])


async def test_a_rule_for_a_command_shows_where_its_lines_end(tmp_path: Path) -> None:
    command = "echo hi\n\n  rm   x"
    message = script({"tool": "Bash", "input": {"command": command}}, DONE)
    async with running_services(tmp_path, approvals="on", shell="sandboxed") as services:
        question = await services.question_of(await services.send(message))
    assert question["input"]["command"] == command
    assert question["permits"][0]["call"] == "echo hi ⏎ rm x"


async def test_an_allowed_call_runs(tmp_path: Path) -> None:
    async with asking(tmp_path, recall_deadline_ms=10_000) as (services, accepted, question):
        assert [one["approval_id"] for one in await services.asked()] == [question["approval_id"]]
        bob, approvals = UserId("bob"), services.chat.approvals
        assert await approvals.listed(bob) == []
        with pytest.raises(NotFound):
            await approvals.answer(bob, question["approval_id"], Reply(decision="allow"))
        await services.answer(question, "allow")
        with pytest.raises(Conflict):
            await services.answer(question, "deny")
        result = await services.result_of(accepted)
        events = await services.events_of(accepted)
        assert (services.settings.workspace / "b.txt").exists()
    assert result["outcome"] == "answered"
    assert kinds(events)[:3] == ["turn.started", "tool.started", "approval.requested"]
    assert (question["name"], question["summary"]) == ("Write", "b.txt")
    assert question.keys() == {
        *("turn_id", "conversation_id", "approval_id", "index", "tool_use_id", "name", "summary"),
        *(
            "permits",
            *("expires_at", "unlisted", "why", "touches"),
            "input",
            "input_chars",
            "truncated",
            "hidden",
            "state",
            "reason",
        ),
    }
    resolved = of_kind(events, "approval.resolved")[0]
    assert question["index"] == resolved["index"] == 1
    assert (resolved["decision"], resolved["by"]) == ("allow", "user")
    assert resolved["approval_id"] == question["approval_id"]


async def test_a_denied_call_does_not_run_and_the_word_is_kept(tmp_path: Path) -> None:
    async with asking(tmp_path) as (services, accepted, question):
        await services.answer(question, "deny", message="Not that one.")
        result = await services.result_of(accepted)
        assert not (services.settings.workspace / "b.txt").exists()
    assert result["outcome"] == "answered_with_failures"
    assert result["tools"][0]["status"] == "denied"
    assert "Not that one." in result["tools"][0]["error"]


@pytest.mark.parametrize("is_deaf", [False, True])
async def test_a_stop_while_a_person_is_asked_withdraws_the_question_and_lets_nothing_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_deaf: bool
) -> None:
    """At once, also where the agent does not hear it."""
    if is_deaf:
        monkeypatch.setattr(ScriptedRun, "interrupt", lambda _run: anyio.lowlevel.checkpoint())
    async with asking(tmp_path, interrupt_grace_s=60) as (services, accepted, question):
        with anyio.fail_after(30):
            result = await services.stop(accepted)
        events = await services.events_of(accepted)
        assert await services.asked() == []
        with pytest.raises(Conflict):
            await services.answer(question, "allow")
        assert not (services.settings.workspace / "b.txt").exists()
        services.assert_nothing_is_left()
        (told,) = await intents_of(services, key="tool.")
    assert (told.key, "was kept from running" in told.text) == ("tool.Write.blocked", True)
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    error = "the run ended before it was allowed, so it did not run"
    assert [(tool["status"], tool["error"]) for tool in result["tools"]] == [("interrupted", error)]
    assert [item["by"] for item in of_kind(events, "approval.resolved")] == ["turn_ended"]


async def test_a_process_that_dies_while_a_person_is_asked_withdraws_the_question(
    tmp_path: Path,
) -> None:
    async with asking(tmp_path) as (services, accepted, _):
        await services.scripted.clients[0].kill()
        result = await services.result_of(accepted)
        events = await services.events_of(accepted)
        assert await services.asked() == []
    assert result["outcome"] == "engine_failed"
    assert kinds(events)[-1] == "turn.completed"
    assert [item["by"] for item in of_kind(events, "approval.resolved")] == ["turn_ended"]
