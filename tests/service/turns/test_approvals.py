"""A person's word on a turn's tool calls, through Chat."""

from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest

from gateway.assemble import Services
from gateway.errors import Conflict, NotFound
from gateway.ids import LOCAL_USER as ME
from gateway.ids import UserId
from gateway.turns import run_driver
from tests.support.scripted_engine import ScriptedRun
from tests.support.services import (
    assert_nothing_is_left,
    events_of,
    kinds,
    of_kind,
    result_of,
    running_services,
    script,
    scripted_engine,
    send,
)

WRITE = {"tool": "Write", "input": {"file_path": "b.txt", "content": "x"}}
DONE = {"text": "Done."}


async def asked(services: Services, accepted: Any) -> dict[str, Any]:
    events = await events_of(services, accepted, until="approval.requested")
    return of_kind(events, "approval.requested")[0]


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
    async with running_services(tmp_path, approvals="on", model_silence_s=60.0) as services:
        accepted = await send(services, script(WRITE, DONE))
        question = await asked(services, accepted)
        clock.ahead_s, seen = 120.0, clock.looks
        with anyio.fail_after(30):
            while clock.looks < seen + 3:  # noqa: ASYNC110  the watch has no event for it
                await anyio.sleep(0.01)
        clock.ahead_s = 0.0
        services.chat.approvals.answer(ME, question["approval_id"], "allow")
        result = await result_of(services, accepted)
    assert (result["outcome"], result["notices"]) == ("answered", [])


async def test_an_allowed_call_runs(tmp_path: Path) -> None:
    async with running_services(tmp_path, approvals="on", recall_deadline_ms=10_000) as services:
        accepted = await send(services, script(WRITE, DONE))
        question = await asked(services, accepted)
        assert [
            item.id for item in services.chat.approvals.pending(ME, accepted.conversation_id)
        ] == [question["approval_id"]]
        assert services.chat.approvals.pending(UserId("bob"), None) == []
        with pytest.raises(NotFound):
            services.chat.approvals.answer(UserId("bob"), question["approval_id"], "allow")
        services.chat.approvals.answer(ME, question["approval_id"], "allow")
        with pytest.raises(Conflict):
            services.chat.approvals.answer(ME, question["approval_id"], "deny")
        result = await result_of(services, accepted)
        events = await events_of(services, accepted)
        assert (services.settings.workspace / "b.txt").exists()
    assert result["outcome"] == "answered"
    assert kinds(events)[:3] == ["turn.started", "tool.started", "approval.requested"]
    assert (question["name"], question["summary"]) == ("Write", "b.txt")
    assert question.keys() == {
        "turn_id",
        "conversation_id",
        "approval_id",
        "index",
        "tool_use_id",
        "name",
        "summary",
        "permits",
        "expires_at",
    }
    resolved = of_kind(events, "approval.resolved")[0]
    assert question["index"] == resolved["index"] == 1
    assert (resolved["decision"], resolved["by"]) == ("allow", "user")
    assert resolved["approval_id"] == question["approval_id"]


async def test_a_denied_call_does_not_run_and_the_word_is_kept(tmp_path: Path) -> None:
    async with running_services(tmp_path, approvals="on") as services:
        accepted = await send(services, script(WRITE, DONE))
        question = await asked(services, accepted)
        services.chat.approvals.answer(ME, question["approval_id"], "deny", message="Not that one.")
        result = await result_of(services, accepted)
        assert not (services.settings.workspace / "b.txt").exists()
    assert result["outcome"] == "answered_with_failures"
    assert result["tools"][0]["status"] == "denied"
    assert "Not that one." in result["tools"][0]["error"]


async def test_a_turn_that_is_interrupted_while_it_waits_lets_nothing_run(tmp_path: Path) -> None:
    async with running_services(tmp_path, approvals="on") as services:
        accepted = await send(services, script(WRITE, DONE))
        question = await asked(services, accepted)
        await services.chat.intake.interrupt(ME, accepted.conversation_id)
        result = await result_of(services, accepted)
        events = await events_of(services, accepted)
        assert services.chat.approvals.pending(ME, None) == []
        with pytest.raises(Conflict):
            services.chat.approvals.answer(ME, question["approval_id"], "allow")
        assert not (services.settings.workspace / "b.txt").exists()
        assert_nothing_is_left(services)
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert [(tool["status"], tool["error"]) for tool in result["tools"]] == [("interrupted", None)]
    assert [item["by"] for item in of_kind(events, "approval.resolved")] == ["turn_ended"]


async def test_a_stop_withdraws_the_question_at_once_though_the_agent_does_not_hear_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScriptedRun, "interrupt", lambda _run: anyio.lowlevel.checkpoint())
    async with running_services(tmp_path, approvals="on", interrupt_grace_s=60) as services:
        accepted = await send(services, script(WRITE, DONE))
        await asked(services, accepted)
        await services.chat.intake.interrupt(ME, accepted.conversation_id)
        with anyio.fail_after(30):
            result = await result_of(services, accepted)
        assert not (services.settings.workspace / "b.txt").exists()
    assert (result["outcome"], result["tools"][0]["status"]) == ("interrupted", "interrupted")


async def test_a_process_that_dies_while_a_person_is_asked_withdraws_the_question(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path, approvals="on") as services:
        accepted = await send(services, script(WRITE, DONE))
        await asked(services, accepted)
        await scripted_engine(services).clients[0].kill()
        result = await result_of(services, accepted)
        events = await events_of(services, accepted)
        assert services.chat.approvals.pending(ME, None) == []
    assert result["outcome"] == "engine_failed"
    assert kinds(events)[-1] == "turn.completed"
    assert [item["by"] for item in of_kind(events, "approval.resolved")] == ["turn_ended"]
