"""The trace of a turn: what stands below what, and what of the model's words may stand in it."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

import anyio
import pytest
from opentelemetry.sdk.trace import ReadableSpan

from gateway.conversations.model import Turn
from gateway.ids import ConversationId, TurnId, UserId
from gateway.observability.tracing import INCOMING, Incoming
from gateway.relay.reports import ModelCall
from gateway.turns.evidence import Evidence, ToolUse
from gateway.turns.turn_trace import TurnTrace, TurnTracing
from policies.secrets import mask_secrets
from tests.support.traces import KeptTraces

AT = datetime(2026, 11, 28, 9, 0, 0, tzinfo=UTC)
KEY = "sk-ant-api03-" + "k7Qz" * 8
KNOWN = "known-secret-4711"


def a_turn() -> Turn:
    return Turn(
        id=TurnId("trn_1"),
        conversation_id=ConversationId("cnv_1"),
        user_id=UserId("local"),
        seq=1,
        state="running",
        message="hello",
        created_at=AT,
    )


async def begun(traces: KeptTraces) -> TurnTrace:
    async with traces.open(lambda _: None) as tracer:
        mask = partial(mask_secrets, known=[KNOWN])
        return TurnTracing(tracer, mask, lambda name: name != "Made_up")(a_turn())


def use(index: int, name: str = "Bash", parent: int | None = None, **more: Any) -> ToolUse:
    given = {"tool_use_id": f"toolu_{index}", "input": {}, "summary": "", "started_s": 0.0, **more}
    return ToolUse(index=index, name=name, parent_index=parent, **given)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_the_calls_of_a_sub_agent_stand_below_the_call_that_began_it() -> None:
    traces = KeptTraces()
    trace, evidence = await begun(traces), Evidence()
    agent, inner, late = use(1, "Agent"), use(2, "Read", 1), use(3, "Grep", 1)
    for call in (agent, inner):
        trace.tool_called(call)
    for call in (inner, agent):
        call.status = "ok"
        trace.tool_finished(call, evidence)
    trace.tool_called(late)
    trace.tool_finished(late, evidence)
    trace.end(None)
    above = "execute_tool Agent"
    assert traces.tree == {
        ("", "invoke_agent candor"),
        ("invoke_agent candor", above),
        (above, "execute_tool Read"),
        (above, "execute_tool Grep"),
    }
    assert attributes(traces.spans[2])["candor.tool.status"] == "unknown"


async def test_a_call_says_who_allowed_it_and_how_long_a_person_was_waited_for() -> None:
    traces = KeptTraces()
    trace, evidence = await begun(traces), Evidence(passed={1})
    call = use(1, status="ok", waited_s=2.5, allowed_by={"by": "person", "approval_id": "apr_1"})
    trace.tool_called(call)
    trace.tool_finished(call, evidence)
    told = attributes(traces.spans[0])
    assert (told["candor.tool.verdict"], told["candor.tool.allowed_by"]) == ("allow", "person")
    assert told["candor.tool.waited_ms"] == 2500


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        ("toolu_01ABC-x.y:z", "toolu_01ABC-x.y:z"),
        ("claude-sonnet-5@2026/beta+1", "claude-sonnet-5@2026/beta+1"),
        *((wrong, "other") for wrong in ("", "two words", "x" * 101, "a\nb", "密码", KEY, KNOWN)),
    ],
)
async def test_what_the_service_chose_counts_only_in_the_form_of_an_id(
    named: str, shown: str
) -> None:
    traces = KeptTraces()
    trace = await begun(traces)
    call = use(1, tool_use_id=named, status="ok")
    trace.tool_called(call)
    trace.tool_finished(call, Evidence())
    trace.model_called(ModelCall(seconds=0.5, asked_model=named, status=200, is_whole=True))
    tool, chat = traces.spans
    assert attributes(tool)["gen_ai.tool.call.id"] == shown
    assert chat.name == f"chat {shown}"


async def test_a_tool_that_nobody_offers_is_not_named() -> None:
    traces = KeptTraces()
    trace = await begun(traces)
    call = use(1, "Made_up", status="failed")
    trace.tool_called(call)
    trace.tool_finished(call, Evidence())
    (span,) = traces.spans
    assert (span.name, attributes(span)["gen_ai.tool.name"]) == ("execute_tool other", "other")
    assert attributes(span)["error.type"] == "failed"


async def test_a_model_call_has_its_figures_times_and_fault() -> None:
    traces = KeptTraces()
    trace = await begun(traces)
    tokens = {"input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 5}
    whole = {"asked_model": "big", "model": "big-2", "is_whole": True}
    trace.model_called(
        ModelCall(seconds=2.0, first_s=0.5, status=200, tokens=tokens, **whole)  # type: ignore[arg-type]
    )
    trace.model_called(ModelCall(seconds=1.0, fault="refused", status=529))
    trace.model_called(ModelCall(seconds=1.0))
    answered, refused, left = traces.spans
    assert attributes(answered) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "big",
        "gen_ai.response.model": "big-2",
        "gen_ai.response.time_to_first_chunk": 0.5,
        "gen_ai.usage.input_tokens": 43,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "gen_ai.usage.output_tokens": 5,
        "http.response.status_code": 200,
        "candor.model.is_whole": True,
    }
    assert answered.start_time is not None
    assert answered.end_time is not None
    assert abs(answered.end_time - answered.start_time - 2_000_000_000) < 1000
    assert attributes(refused)["error.type"] == "refused"
    assert attributes(left)["error.type"] == "cancelled"


async def test_a_turn_that_waited_begins_with_its_request() -> None:
    traces = KeptTraces()
    token = INCOMING.set(Incoming(caller={}, came_s=anyio.current_time() - 60))
    try:
        trace = await begun(traces)
    finally:
        INCOMING.reset(token)
    trace.step("request")
    result = {
        "started_at": "2026-11-28T09:00:07.5Z",
        "outcome": "engine_failed",
        "stop_reason": "api_error",
        "cause": "unavailable",
        "tools": [],
        "cost_usd": 0.5,
        "model": "",
        "usage": {"input_tokens": 1, "output_tokens": 2, "context_tokens": 9},
    }
    trace.end(result)
    request, root = traces.spans
    assert request.start_time == root.start_time
    assert (root.end_time or 0) - (root.start_time or 0) > 59 * 10**9
    told = attributes(root)
    assert told["candor.turn.queued_ms"] == 7500
    assert (told["error.type"], told["candor.turn.cause"]) == ("api_error", "unavailable")
