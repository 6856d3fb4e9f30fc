"""The model's service fails, the agent's process dies, its session is lost: what the user is told."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from gateway.engine.events import (
    EngineEvent,
    ModelRetrying,
    RunFinished,
    TextDelta,
    TextDone,
    ToolCalled,
)
from gateway.engine.protocol import ClientDead, Prompt
from gateway.turns.control import TurnControl
from gateway.turns.run_driver import ServiceWatch
from tests.support.builders import codes
from tests.support.scripted_engine import ScriptedClient, ScriptedRun
from tests.support.services import running_services, script


@pytest.mark.parametrize(("status", "word"), [(400, "400"), (401, "ANTHROPIC_API_KEY")])
async def test_a_hopeless_request_is_given_up_at_its_first_failure(
    tmp_path: Path, status: int, word: str
) -> None:
    async with running_services(tmp_path) as services:
        result = await services.ask(script({"status": status, "times": 20}, {"text": "never"}))
        lines = await services.journal_of(result)
    assert len([line for line in lines if line["kind"] == "error"]) < 5, "it was not waited out"
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "api_error")
    assert word in result["reply"]
    assert "API Error" not in result["reply"]
    assert codes(result["notices"]) == []


@pytest.mark.parametrize(
    ("failure", "what"),
    [({"status": 529}, "529, overloaded"), ({"drop": True}, "the connection broke")],
)
async def test_a_failure_that_may_pass_is_told_and_waited_out(
    tmp_path: Path, failure: dict[str, Any], what: str
) -> None:
    async with running_services(tmp_path) as services:
        result = await services.ask(script({**failure, "times": 2}, {"text": "There you are."}))
    assert (result["outcome"], result["reply"]) == ("answered", "There you are.")
    assert codes(result["notices"]) == ["model_retrying"] * 2
    assert result["notices"][1]["message"] == (
        f"The model's service failed ({what}); attempt 2 follows in 0.0 s."
    )


async def test_a_killed_agent_process_is_told_and_the_next_turn_remembers(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        accepted = await services.begin()
        await services.scripted.clients[0].kill()
        result = await services.result_of(accepted)
        after = await services.ask(script({"echo": "messages"}), accepted.conversation_id)
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "engine_crash")
    assert result["reply"].startswith("I begin\n\nThe agent's process ended unexpectedly")
    assert "I begin" in after["reply"]
    assert after["notices"] == []


async def test_an_agent_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        services.scripted.broken = True
        result = await services.ask("hello")
        lines = await services.journal_of(result)
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "engine_crash")
    assert result["reply"].startswith("The agent could not be started")
    assert [line["kind"] for line in lines] == ["request", "error", "context", "response"]


def die_at_starts(
    monkeypatch: pytest.MonkeyPatch, times: int, before: Callable[[], object] = lambda: None
) -> None:
    """Make the next starts of runs find a dead process."""
    real, left = ScriptedClient.start_run, iter(range(times))

    async def start_run(client: ScriptedClient, prompt: Prompt) -> ScriptedRun:
        if next(left, None) is None:
            return await real(client, prompt)
        await client.kill()
        before()
        raise ClientDead("The agent process has ended.")

    monkeypatch.setattr(ScriptedClient, "start_run", start_run)


async def test_a_process_found_dead_at_the_start_is_replaced_once_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path) as services:
        first = await services.ask("hello")
        die_at_starts(monkeypatch, times=1)
        second = await services.ask(script({"echo": "messages"}), first["conversation_id"])
        die_at_starts(monkeypatch, times=2)
        third = await services.ask("hello", first["conversation_id"])
        fourth = await services.ask("hello", first["conversation_id"])
    assert (second["outcome"], codes(second["notices"])) == ("answered", ["client_restarted"])
    assert "hello" in second["reply"]
    assert (third["outcome"], third["stop_reason"]) == ("engine_failed", "engine_crash")
    assert fourth["outcome"] == "answered"


async def test_a_client_whose_prompt_may_be_with_it_still_is_not_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ScriptedClient.start_run
    async with running_services(tmp_path) as services:

        async def break_after_sending(client: ScriptedClient, prompt: Prompt) -> ScriptedRun:
            await real(client, prompt)
            raise RuntimeError("broken")

        with monkeypatch.context() as patched:
            patched.setattr(ScriptedClient, "start_run", break_after_sending)
            result = await services.ask("hello")
        assert services.scripted.clients == []
        services.assert_nothing_is_left()
        after = await services.ask("hello", result["conversation_id"])
    assert (result["outcome"], after["outcome"]) == ("engine_failed", "answered")


async def test_an_agent_that_breaks_off_by_itself_does_not_get_the_next_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ScriptedRun._play  # noqa: SLF001  no script breaks off

    async def break_off(run: ScriptedRun) -> RunFinished:
        return replace(await real(run), subtype="error_during_execution", is_error=True)

    async with running_services(tmp_path) as services:
        monkeypatch.setattr(ScriptedRun, "_play", break_off)
        await services.ask("hello")
        assert services.scripted.clients == []


@pytest.mark.parametrize(
    ("between", "is_stopped"),
    [
        (TextDone(text="x"), False),
        (ToolCalled(tool_use_id="t", name="Read", input={}), False),
        (TextDelta(text="x"), True),
    ],
    ids=["a text", "a call", "a piece"],
)
def test_failures_last_until_the_service_has_answered(
    monkeypatch: pytest.MonkeyPatch, between: EngineEvent, *, is_stopped: bool
) -> None:
    control, times = TurnControl(), iter([0.0, 8.0, 14.0])
    limits = SimpleNamespace(model_silence_s=10)
    parts, evidence = SimpleNamespace(limits=limits), SimpleNamespace(has_open_calls=False)
    context: Any = SimpleNamespace(parts=parts, control=control, evidence=evidence)
    watch = ServiceWatch(context)
    failure = ModelRetrying(attempt=1, max_attempts=9, delay_ms=5000, status=529, error="")
    monkeypatch.setattr(anyio, "current_time", lambda: next(times))
    for event in (failure, between, failure):
        watch.take(event)
    assert control.is_stopping == is_stopped
    run: Any = SimpleNamespace(silent_since=0.0)
    assert watch._silent_s(run) == 1, "the wait before a retry is no silence"  # noqa: SLF001


async def test_what_was_shown_in_a_lost_session_is_shown_again(tmp_path: Path) -> None:
    question = f"Who owns the lighthouse?\n{script({'echo': 'context'})}"
    async with running_services(tmp_path, record="off") as services:
        folder = anyio.Path(services.settings.workspace) / "memory"
        await folder.mkdir()
        await (folder / "own.md").write_text("# Owners\n\nAda owns the lighthouse.", "utf-8")
        await services.open_memory.notes.scan()
        first = await services.ask(question)
        conversation_id = first["conversation_id"]
        again = await services.ask(question, conversation_id)
        await services.pool.drop(conversation_id)
        services.scripted.sessions.clear()
        lost = await services.ask(question, conversation_id)
    assert [bool(one["memory"]["injected"]) for one in (first, again, lost)] == [True, False, True]
    assert "Ada owns the lighthouse" in lost["reply"]


async def test_a_lost_session_is_told_and_not_also_called_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path) as services:
        first = await services.ask("hello")
        conversation_id = first["conversation_id"]
        await services.pool.drop(conversation_id)
        services.scripted.sessions.clear()
        lost = await services.ask(script({"echo": "messages"}), conversation_id)
        die_at_starts(monkeypatch, times=1, before=services.scripted.sessions.clear)
        both = await services.ask("hello", conversation_id)
        after = await services.ask(script({"echo": "messages"}), conversation_id)
    assert (lost["outcome"], codes(lost["notices"])) == ("answered", ["session_lost"])
    assert "hello" not in lost["reply"]
    assert codes(both["notices"]) == ["session_lost"]
    assert codes(after["notices"]) == []
