"""Translates SDK messages to engine events. Pure; accepts any message."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    Message,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from gateway.engine.events import (
    NO_NAME,
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
    WholeOutput,
)
from gateway.engine.result_text import honest_failure, plain_result
from gateway.jsonsafe import json_text

_SYNTHETIC = "<synthetic>"
"""The model name of the agent program's own messages."""

_GOES_ON = "tool_use"
"""The stop reason of the agent program's message that a picture was removed: it asks again without
it."""

_READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""What a model has read, by how it is charged."""

_MOST = 2**53
"""A service may send any number; up to this one all whole numbers are exact."""
_UNPARSED = "__unparsedToolInput"
"""Under this key the agent program passes on an input that is no JSON."""

NO_OBJECT = "input"
"""The key of an input that is not an object."""


def translate(message: Message) -> Iterator[EngineEvent]:
    """Yield the events of a message, in order. Unknown kinds have none."""
    match message:
        case StreamEvent(parent_tool_use_id=None):
            yield from _stream_event(message.event)
        case AssistantMessage():
            yield from _assistant(message)
            yield from _entry(message)
        case UserMessage():
            yield from _tool_results(message)
            yield from _entry(message)
        case ResultMessage():
            yield _result(message)
        case SystemMessage(subtype="init"):
            yield _init(message.data)
        case SystemMessage(subtype="compact_boundary"):
            yield _summarised(message.data)
        case SystemMessage(subtype="api_retry"):
            yield _retry(message.data)
        case _:
            return


def _stream_event(event: dict[str, Any]) -> Iterator[EngineEvent]:
    kind = event.get("type")
    if kind == "message_start":
        yield MessageBegun(context_tokens=_context_tokens(event.get("message")))
    elif isinstance(delta := event.get("delta"), dict):
        yield from _delta(kind, delta, event.get("usage"))


def _context_tokens(message: object) -> int:
    usage = message.get("usage") if isinstance(message, dict) else None
    return sum(_whole(usage.get(key)) for key in _READ) if isinstance(usage, dict) else 0


def _delta(kind: object, delta: dict[str, Any], usage: object) -> Iterator[EngineEvent]:
    if kind == "message_delta" and delta.get("stop_reason"):
        written = _whole(usage.get("output_tokens")) if isinstance(usage, dict) else 0
        yield MessageEnded(stop_reason=str(delta["stop_reason"]), output_tokens=written)
    elif kind == "content_block_delta":
        if delta.get("type") == "text_delta" and delta.get("text"):
            yield TextDelta(text=str(delta["text"]))
        elif delta.get("type") == "thinking_delta" and delta.get("thinking"):
            yield ThinkingDelta(text=str(delta["thinking"]))


def _assistant(message: AssistantMessage) -> Iterator[EngineEvent]:
    if message.error == "invalid_request" and message.stop_reason == _GOES_ON:
        yield PictureRefused()
        return
    main = message.parent_tool_use_id is None
    if message.error is not None:
        if main:  # the failure of a sub-agent is the result of its call
            yield ModelFailed(kind=str(message.error), text=_texts(message.content))
        return
    if not main:
        yield SubagentAnswered(message_id=message.message_id or "")
    for block in message.content:
        if isinstance(block, ToolUseBlock):
            yield ToolCalled(
                tool_use_id=_as_text(block.id),
                name=_as_text(block.name) or NO_NAME,
                input=as_object(block.input),
                is_unreadable=_unreadable(block.input) is not None,
                parent_tool_use_id=message.parent_tool_use_id,
            )
        elif isinstance(block, TextBlock) and main and message.model != _SYNTHETIC and block.text:
            yield TextDone(text=block.text)


def _as_text(value: object) -> str:
    """Return an id or a name as text; a model may send any JSON value, or none."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value)


def as_object(value: object) -> Mapping[str, Any]:
    """Return a call's input as an object."""
    raw = _unreadable(value)
    if raw is not None:
        return {NO_OBJECT: raw}
    return value if isinstance(value, dict) else {NO_OBJECT: value}


def _unreadable(value: object) -> str | None:
    """Return the text of an input that the agent program could not read as JSON; None
    if it could.
    """
    told = value.get(_UNPARSED) if isinstance(value, dict) and len(value) == 1 else None
    raw = told.get("raw") if isinstance(told, dict) else None
    return raw if isinstance(raw, str) else None


def _entry(message: AssistantMessage | UserMessage) -> Iterator[EngineEvent]:
    if message.parent_tool_use_id is None and message.uuid:
        yield EntryRecorded(entry_id=message.uuid)


def _texts(blocks: Sequence[object]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


def _tool_results(message: UserMessage) -> Iterator[EngineEvent]:
    if isinstance(message.content, str):
        return
    for block in message.content:
        if isinstance(block, ToolResultBlock):
            yield _returned(block)


def _returned(block: ToolResultBlock) -> ToolReturned:
    text, is_error = plain_result(_result_text(block.content)), bool(block.is_error)
    whole = None
    if is_error:
        text, is_cut = honest_failure(text)
        whole = WholeOutput(text=text, chars=None) if is_cut else None
    return ToolReturned(
        tool_use_id=_as_text(block.tool_use_id),
        is_error=is_error,
        text=text,
        has_picture=_has_picture(block.content),
        whole=whole,
    )


def _result_text(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, str):
        return content
    parts = []
    for part in content or []:
        told: object = part
        kind = told.get("type") if isinstance(told, dict) else None
        parts.append(str(part.get("text", "")) if kind == "text" else f"[{kind or 'unknown'}]")
    return "\n".join(parts)


def _has_picture(content: str | list[dict[str, Any]] | None) -> bool:
    parts: list[object] = list(content) if isinstance(content, list) else []
    return any(isinstance(part, dict) and part.get("type") == "image" for part in parts)


def _result(message: ResultMessage) -> RunFinished:
    """Translate a result; its cost is the agent process's total."""
    return RunFinished(
        subtype=message.subtype,
        is_error=message.is_error,
        result=message.result,
        terminal_reason=message.terminal_reason,
        stop_reason=message.stop_reason,
        api_error_status=message.api_error_status,
        errors=_strings(message.errors),
        session_id=message.session_id,
        usage=message.usage or {},
        cost_usd=_amount(message.total_cost_usd),
        context_windows={
            model: window
            for model, used in (message.model_usage or {}).items()
            if (window := _whole(used.get("contextWindow"))) > 0
        },
    )


def _init(data: dict[str, Any]) -> SessionReady:
    return SessionReady(
        session_id=str(data.get("session_id", "")),
        model=str(data.get("model", "")),
        tools=_strings(data.get("tools")),
        skills=_strings(data.get("skills")),
        slash_commands=_strings(data.get("slash_commands")),
    )


def _summarised(data: dict[str, Any]) -> Summarised:
    told = data.get("compact_metadata")
    trigger = told.get("trigger") if isinstance(told, dict) else None
    return Summarised(trigger="manual" if trigger == "manual" else "auto")


def _retry(data: dict[str, Any]) -> ModelRetrying:
    status = data.get("error_status")
    return ModelRetrying(
        attempt=_whole(data.get("attempt")),
        max_attempts=_whole(data.get("max_retries")),
        delay_ms=_whole(data.get("retry_delay_ms")),
        status=status if isinstance(status, int) else None,
        error=str(data.get("error") or ""),
    )


def _strings(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _whole(value: object) -> int:
    return int(_amount(value))


def _amount(value: object) -> float:
    """Return a number as it is; 0 if it is none, or none that anything can count to."""
    if isinstance(value, int | float) and -_MOST <= value <= _MOST:
        return float(value)
    return 0.0
