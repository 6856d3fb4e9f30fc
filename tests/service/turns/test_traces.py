"""The trace of a turn: its steps, and nothing of what was said in it."""

import sqlite3
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest

from gateway.application import create_app
from gateway.conversations.sql import turns
from gateway.ids import LOCAL_USER as ME
from memory.errors import StoreUnavailable
from memory.remote.small_model import ModelUnavailable
from tests.support.services import running_services, script
from tests.support.traces import KeptTraces

ROOT = "invoke_agent candor"
LS = {"tool": "Bash", "input": {"command": "ls"}}
FORBIDDEN = {"tool": "Bash", "input": {"command": "curl example.org"}}
SECRET = "Quetzalcoatl-7391"
CALLER = "4bf92f3577b34da6a3ce929d0e0e4736"


async def test_a_turns_steps_stand_below_it_and_say_what_came_of_them(tmp_path: Path) -> None:
    traces = KeptTraces()
    async with running_services(tmp_path, open_tracer=traces.open) as services:
        result, _, journal = await services.play(script(LS, FORBIDDEN, {"text": "Done."}))
    assert traces.tree == {
        ("", ROOT),
        *((ROOT, step) for step in ("request", "recall", "client", "chat other", "reply")),
        (ROOT, "execute_tool Bash"),
    }
    (root,) = traces.attributes(ROOT)
    assert root == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.agent.name": "candor",
        "gen_ai.agent.version": root["gen_ai.agent.version"],
        "gen_ai.conversation.id": result["conversation_id"],
        "gen_ai.request.model": "scripted",
        "gen_ai.response.finish_reasons": ("end_turn",),
        "gen_ai.usage.input_tokens": 0,
        "gen_ai.usage.output_tokens": 0,
        "candor.turn.id": result["turn_id"],
        "candor.turn.outcome": "answered_with_failures",
        "candor.turn.stop_reason": "end_turn",
        "candor.turn.tool_calls": 2,
        "candor.turn.cost_usd": 0.0,
        "candor.turn.queued_ms": 0,
    }
    told = [
        (call["gen_ai.tool.call.id"], call["candor.tool.status"], call["candor.tool.verdict"])
        for call in traces.attributes("execute_tool Bash")
    ]
    first, second = (call["tool_use_id"] for call in result["tools"])
    assert told == [(first, "ok", "allow"), (second, "denied", "deny")]
    assert traces.attributes("client")[0]["candor.client.origin"] == "connected"
    assert traces.attributes("recall")[0] == {
        "candor.recall.items": 0,
        "candor.recall.held_back": 0,
        "candor.recall.degraded": (),
    }
    assert traces.ids == [line["trace_id"] for line in journal if "trace_id" in line]


async def test_without_a_tracer_no_log_names_a_trace(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        _, _, journal = await services.play("hello")
    assert not any("trace_id" in line for line in journal)


async def test_the_trace_of_the_request_goes_on(tmp_path: Path) -> None:
    traces = KeptTraces()
    async with running_services(tmp_path, open_tracer=traces.open) as services:
        transport = httpx.ASGITransport(create_app(services))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as http:
            for caller in (f"00-{CALLER}-00f067aa0ba902b7-01", "nonsense", None):
                headers = {"traceparent": caller} if caller else {}
                answer = await http.post("/chat", json={"message": "hello"}, headers=headers)
                assert answer.status_code == 200
    first, *others = traces.roots
    assert traces.ids[0] == CALLER
    assert first.parent is not None
    assert f"{first.parent.span_id:016x}" == "00f067aa0ba902b7"
    assert [root.parent for root in others] == [None, None]


class SmallModel:
    """Allows a call, finds no claim and answers a front end; `failure` is raised instead."""

    def __init__(self) -> None:
        self.failure: Exception | None = None

    async def __call__(self, *, system: str, prompt: str, timeout_s: float) -> str:
        await anyio.lowlevel.checkpoint()
        if self.failure is not None:
            raise self.failure
        return '{"allow": true}' if "permission" in system else '{"claims": []}'


async def test_a_question_to_the_small_model_is_a_step_of_the_turn_that_asks_it(
    tmp_path: Path,
) -> None:
    """A call is reviewed within the turn, its claims are checked after it."""
    traces = KeptTraces()
    write = {"tool": "Write", "input": {"file_path": "b.txt", "content": SECRET}}
    settings: Any = {"approvals": "on", "review": "model", "check": "model", "side_model": "small"}
    async with running_services(
        tmp_path, ask_model=SmallModel(), open_tracer=traces.open, **settings
    ) as services:
        await services.play(script(write, {"text": SECRET}))
        with anyio.fail_after(30):
            while len(traces.attributes("side_query")) < 2:  # noqa: ASYNC110  no signal
                await anyio.sleep(0.01)
    assert {tree for tree in traces.tree if "side_query" in tree} == {(ROOT, "side_query")}
    asked = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic"}
    assert traces.attributes("side_query") == [asked | {"gen_ai.request.model": "small"}] * 2
    assert SECRET not in "\n".join(span.to_json() for span in traces.spans)


async def test_a_front_ends_own_question_is_a_trace_that_goes_on_with_its_callers(
    tmp_path: Path,
) -> None:
    traces, model = KeptTraces(), SmallModel()
    body = {"model": "candor-task", "messages": [{"role": "user", "content": SECRET}]}
    headers = {"traceparent": f"00-{CALLER}-00f067aa0ba902b7-01"}
    async with running_services(tmp_path, ask_model=model, open_tracer=traces.open) as services:
        transport = httpx.ASGITransport(create_app(services))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as http:
            for failure in (None, ModelUnavailable("It is gone.")):
                model.failure = failure
                await http.post("/openai/v1/chat/completions", json=body, headers=headers)
    first, second = traces.spans
    for span in (first, second):
        assert span.name == "side_query"
        assert span.context is not None
        assert f"{span.context.trace_id:032x}" == CALLER
    errors = [(span.attributes or {}).get("error.type") for span in (first, second)]
    assert errors == [None, "unavailable"]


async def test_a_caller_that_keeps_no_trace_gets_none(tmp_path: Path) -> None:
    traces = KeptTraces()
    async with running_services(tmp_path, open_tracer=traces.open) as services:
        transport = httpx.ASGITransport(create_app(services))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as http:
            headers = {"traceparent": f"00-{CALLER}-00f067aa0ba902b7-00"}
            await http.post("/chat", json={"message": "hello"}, headers=headers)
    assert traces.spans == []


async def test_nothing_that_was_said_is_in_a_trace(tmp_path: Path) -> None:
    """Not what the person, the model or a tool said, wherever it stands, and no known secret."""
    traces = KeptTraces()
    known = "known-secret-4711"
    calls = [
        {"name": "Bash", "id": SECRET, "input": {"command": f"cat {SECRET}"}},
        {"name": "Read", "id": known, "input": {"file_path": "secret.txt"}},
        {"name": SECRET, "id": f"a {SECRET}", "input": {SECRET: SECRET}},
    ]
    async with running_services(tmp_path, open_tracer=traces.open) as services:
        (services.settings.workspace / "secret.txt").write_text(SECRET, encoding="utf-8")
        words = script({"thinking": SECRET, "text": SECRET, "tools": calls}, {"text": SECRET})
        result = await services.ask(f"{SECRET} {words}", project_id=SECRET)
        await services.ask(f"{SECRET} {script({'status': 400})}", result["conversation_id"])
    assert len(result["tools"]) == 3
    assert len(traces.roots) == 2
    told = "\n".join(span.to_json() for span in traces.spans)
    ids = [call["tool_use_id"] for call in result["tools"]]
    assert known not in ids  # it is masked everywhere
    assert told.count(SECRET) == told.count(f'"gen_ai.tool.call.id": "{SECRET}"') == 1
    assert known not in told
    assert '"gen_ai.tool.name": "other"' in told


async def test_a_message_that_was_not_stored_or_was_taken_back_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    traces = KeptTraces()
    async with running_services(tmp_path, open_tracer=traces.open) as services:
        with monkeypatch.context() as patch:
            patch.setattr(turns, "insert_events", full)
            with pytest.raises(StoreUnavailable):
                await services.send("hello")
        running = await services.begin()
        waiting = await services.send("hello", running.conversation_id)
        await services.chat.intake.take_back(ME, running.conversation_id, waiting.turn_id)
        await services.stop(running)
    errors = [(span.attributes or {}).get("error.type") for span in traces.roots]
    assert errors == ["not_run", "not_run", None]


async def test_a_turn_without_an_agent_is_an_error_of_its_trace(tmp_path: Path) -> None:
    traces = KeptTraces()
    async with running_services(tmp_path, open_tracer=traces.open) as services:
        services.scripted.broken = True
        await services.ask("hello")
    (root,) = traces.roots
    assert root.status.is_ok is False
    assert (root.attributes or {})["error.type"] == "engine_crash"
    assert traces.attributes("client") == [{"candor.client.origin": "none"}]
