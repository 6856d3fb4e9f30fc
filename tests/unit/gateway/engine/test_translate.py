"""SDK messages to events: what is read out of each, and that nothing that comes can break it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    Message,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.events import (
    EngineEvent,
    EntryRecorded,
    MessageBegun,
    MessageEnded,
    ModelFailed,
    ModelRetrying,
    PictureRefused,
    RunFinished,
    SessionReady,
    SubagentAnswered,
    Summarised,
    TextDelta,
    TextDone,
    ThinkingDelta,
    ToolCalled,
    ToolReturned,
)
from gateway.engine.translate import translate
from tests.support.engine_fakes import result

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
INIT_KEYS = ("session_id", "model", "tools", "skills")
RETRY_KEYS = ("attempt", "max_retries", "retry_delay_ms", "error_status", "error")


def events_of(message: object) -> list[EngineEvent]:
    return list(translate(cast("Message", message)))


def assistant(*blocks: Any, **more: Any) -> AssistantMessage:
    return AssistantMessage(content=list(blocks), **{"model": "m", "uuid": "e", **more})


def stream(event: dict[str, Any], parent: str | None = None) -> StreamEvent:
    return StreamEvent(uuid="u", session_id="s", event=event, parent_tool_use_id=parent)


def delta(kind: str, *, parent: str | None = None, **fields: object) -> StreamEvent:
    return stream({"type": "content_block_delta", "delta": {"type": kind, **fields}}, parent)


def ended(reason: str | None, **usage: int) -> StreamEvent:
    return stream({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage})


def returned(content: Any, **more: Any) -> list[Any]:
    return [ToolResultBlock(tool_use_id="t", content=content, **more)]


def tool_returned(text: str, *, is_error: bool = False) -> ToolReturned:
    return ToolReturned(tool_use_id="t", is_error=is_error, text=text)


RECORDED = EntryRecorded(entry_id="e")
USED = {"input_tokens": 5, "cache_read_input_tokens": 70}
BEGUN = MessageBegun(context_tokens=75)
ENDED = MessageEnded(stop_reason="pause_turn", output_tokens=8)
CALLED = ToolCalled(tool_use_id="t", name="Bash", input={"command": "ls"})
CALL = ToolUseBlock(id="t", name="Bash", input={"command": "ls"})


def compacted(told: object) -> SystemMessage:
    return SystemMessage(subtype="compact_boundary", data={"compact_metadata": told})


@pytest.mark.parametrize(
    ("message", "events"),
    [
        (stream({"type": "message_start"}), [MessageBegun()]),
        (stream({"type": "message_start", "message": {"usage": USED}}), [BEGUN]),
        (delta("text_delta", text="a"), [TextDelta(text="a")]),
        (delta("thinking_delta", thinking="a"), [ThinkingDelta(text="a")]),
        (delta("text_delta", text=""), []),
        (delta("text_delta", text="a", parent="t"), []),
        (ended("pause_turn", output_tokens=8), [ENDED]),
        (ended(None), []),
        (stream({"type": "ping"}), []),
        (
            assistant(ThinkingBlock(thinking="hm", signature=""), TextBlock(text="a"), CALL),
            [TextDone(text="a"), CALLED, RECORDED],
        ),
        (assistant(TextBlock(text="")), [RECORDED]),
        (assistant(TextBlock(text="a"), uuid=None), [TextDone(text="a")]),
        (
            assistant(TextBlock(text="by a subagent"), parent_tool_use_id="t", message_id="m1"),
            [SubagentAnswered(message_id="m1")],
        ),
        (
            assistant(TextBlock(text="API Error"), parent_tool_use_id="t", error="server_error"),
            [],
        ),
        (assistant(TextBlock(text="a"), model="<synthetic>"), [RECORDED]),
        (
            assistant(TextBlock(text="API Error"), error="server_error"),
            [ModelFailed(kind="server_error", text="API Error"), RECORDED],
        ),
        (
            assistant(TextBlock(text="removed"), error="invalid_request", stop_reason="tool_use"),
            [PictureRefused(), RECORDED],
        ),
        (
            UserMessage(returned("out"), uuid="e"),
            [tool_returned("out"), RECORDED],
        ),
        (
            UserMessage(
                returned([{"type": "text", "text": "out"}, {"type": "image"}], is_error=True)
            ),
            [replace(tool_returned("out\n[image]", is_error=True), has_picture=True)],
        ),
        (UserMessage(content="plain"), []),
        (compacted({"trigger": "manual"}), [Summarised(trigger="manual")]),
        (compacted({"trigger": "auto"}), [Summarised(trigger="auto")]),
        (compacted(["odd"]), [Summarised(trigger="auto")]),
        (SystemMessage(subtype="status", data={}), []),
    ],
)
def test_each_message_has_its_events(message: Message, events: Sequence[EngineEvent]) -> None:
    assert events_of(message) == events


def test_a_result_is_read_whole() -> None:
    same: dict[str, Any] = {
        "subtype": "error_during_execution",
        "is_error": True,
        "result": None,
        "terminal_reason": "aborted_tools",
        "stop_reason": "tool_use",
        "api_error_status": 529,
        "usage": {"input_tokens": 1},
    }
    message = result(errors=["one"], total_cost_usd=0.5, **same)
    finished = RunFinished(errors=("one",), session_id="s", cost_usd=0.5, **same)
    assert events_of(message) == [finished]


@given(call_id=JSON, name=JSON, given_input=JSON)
def test_any_call_is_read_with_a_text_as_id_and_name_and_an_object_as_input(
    call_id: Any, name: Any, given_input: Any
) -> None:
    (event, _) = events_of(assistant(ToolUseBlock(id=call_id, name=name, input=given_input)))
    assert isinstance(event, ToolCalled)
    assert isinstance(event.tool_use_id, str)
    assert isinstance(event.name, str)
    assert event.name
    whole = given_input if isinstance(given_input, dict) else {"input": given_input}
    assert repr(event.input) == repr(whole)  # NaN equals nothing


@given(
    data=st.dictionaries(st.sampled_from([*INIT_KEYS, *RETRY_KEYS, "type", "delta"]), JSON),
    cost=JSON,
)
def test_any_message_is_read(data: dict[str, Any], cost: object) -> None:
    (event,) = events_of(SystemMessage(subtype="init", data=data))
    assert isinstance(event, SessionReady)
    (event,) = events_of(SystemMessage(subtype="api_retry", data=data))
    assert isinstance(event, ModelRetrying)
    events_of(stream(data))
    events_of(stream({**data, "type": "content_block_delta"}))
    odd = data.get("tools")
    (event,) = events_of(result(total_cost_usd=cost, permission_denials=odd, errors=odd))
    assert isinstance(event, RunFinished)
    assert math.isfinite(event.cost_usd)


@pytest.mark.parametrize(
    "number",
    [10**400, 1e300, math.inf, -math.inf, math.nan, 2**53 + 1, "7"],
    ids=["400 digits", "1e300", "inf", "-inf", "nan", "2**53 + 1", "text"],
)
def test_a_number_that_nothing_can_count_to_is_none(number: Any) -> None:
    (retry,) = events_of(SystemMessage("api_retry", {"retry_delay_ms": number, "attempt": 2**53}))
    assert isinstance(retry, ModelRetrying)
    assert (retry.delay_ms, retry.attempt) == (0, 2**53)
    (finish,) = events_of(result(total_cost_usd=number))
    assert isinstance(finish, RunFinished)
    assert finish.cost_usd == 0
