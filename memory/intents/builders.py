"""From what happened to an intent; the only place that makes intents.

Each takes a `Happening`: whose it is, where and when. Ids are made of what happened, so that telling
the same again, after a crash say, is seen as the same. A payload is raw and whole, it lives no longer than
its intent: it is masked and then bounded where it is put into words, since a cut before masking could
leave half a secret, which nothing would know as one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from memory.ids import derived_id
from memory.intents.intent import MemoryIntent
from memory.intents.registry import MAX_TOOL_NAME_CHARS, form_of

_NAME_MARKS: Final = "_.:-/"

ToolOutcome = Literal["ok", "blocked", "error", "interrupted"]
ConversationChange = Literal["started", "reset", "forked"]
DeliveryOutcome = Literal["delivered", "failed", "dead"]
BreakerChange = Literal["opened", "half_opened", "closed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Whose it is, where and when it happened."""

    owner_id: str
    occurred_at: datetime
    conversation_id: str | None = None
    turn_id: str | None = None


def intent_from_turn_received(
    at: Happening, *, message: str, labels: Mapping[str, str] | None = None
) -> MemoryIntent:
    """A person's message was taken."""
    payload = {"message": message, "labels": dict(labels or {})}
    return _made(at, "turn.received", payload, "A message was received.")


def intent_from_turn_completed(
    at: Happening, *, outcome: str, stop_reason: str, reply: str, tool_calls: int, duration_ms: int
) -> MemoryIntent:
    """A turn ended, with its one outcome."""
    payload = {
        "outcome": outcome,
        "stop_reason": stop_reason,
        "reply": reply,
        "tool_calls": tool_calls,
        "duration_ms": duration_ms,
    }
    return _made(at, "turn.completed", payload, f"The turn ended: {outcome}.")


def intent_from_turn_cut_off(
    at: Happening, *, outcome: str, stop_reason: str, message: str, tools: str
) -> MemoryIntent:
    """A turn ended before the agent had finished: its session may not know how."""
    payload = {
        "outcome": outcome,
        "stop_reason": stop_reason,
        "message": message,
        "tools": tools,
    }
    return _made(at, "turn.cut_off", payload, f"The turn before was cut off ({outcome}).")


def intent_from_llm_response(
    at: Happening, *, text: str, model: str, number: int = 1
) -> MemoryIntent:
    """The model said something to the person; `number` tells a turn's answers apart."""
    payload = {"text": text, "model": model}
    return _made(at, "llm.response", payload, "The model answered.", str(number))


def intent_from_tool_result(
    at: Happening,
    *,
    tool_name: str,
    status: ToolOutcome,
    tool_use_id: str,
    args: Mapping[str, Any],
    result: str,
    index: int = 0,
    duration_ms: int | None = None,
) -> MemoryIntent:
    """A tool call came back, or was kept from running, or was cut off.

    `index` is the call's number in its turn: the model may repeat `tool_use_id`. `result` is what it gave, or the error, or why it did not run.
    """
    name = _tool_name(tool_name)
    payload = {
        "tool_name": name,
        "status": status,
        "tool_use_id": tool_use_id,
        "args": dict(args),
        "result": result,
        "duration_ms": duration_ms,
    }
    return _made(
        at, f"tool.{name}.{status}", payload, f"{name}: {status}.", f"{index}:{tool_use_id}"
    )


def intent_from_permission(
    at: Happening,
    *,
    allowed: bool,
    tool_name: str,
    tool_use_id: str,
    rule: str,
    reason: str,
    index: int = 0,
) -> MemoryIntent:
    """The policy decided on a tool call; `index` as in `intent_from_tool_result`."""
    payload = {"tool_name": tool_name, "tool_use_id": tool_use_id, "rule": rule, "reason": reason}
    what = "allowed" if allowed else "denied"
    return _made(
        at, f"permission.{what}", payload, f"{tool_name} was {what}.", f"{index}:{tool_use_id}"
    )


def intent_from_approval_requested(
    at: Happening, *, approval_id: str, tool_name: str, summary: str
) -> MemoryIntent:
    """A person was asked about a tool call."""
    payload = {"approval_id": approval_id, "tool_name": tool_name, "summary": summary}
    return _made(at, "approval.requested", payload, "A person was asked.", approval_id)


def intent_from_approval_resolved(
    at: Happening, *, approval_id: str, decision: str, by: str
) -> MemoryIntent:
    """A person answered, or nobody did in time."""
    payload = {"approval_id": approval_id, "decision": decision, "by": by}
    return _made(at, "approval.resolved", payload, f"The answer was {decision}.", approval_id)


def intent_from_memory_injected(
    at: Happening, *, ids: Sequence[str], titles: Sequence[str]
) -> MemoryIntent:
    """Remembered things were shown to the model."""
    payload = {"ids": list(ids), "titles": list(titles)}
    return _made(at, "memory.injected", payload, "Memory was shown to the model.")


def intent_from_memory_suppressed(
    at: Happening, *, ids: Sequence[str], reasons: Sequence[str]
) -> MemoryIntent:
    """Remembered things were found and held back."""
    payload = {"ids": list(ids), "reasons": list(reasons)}
    return _made(at, "memory.suppressed", payload, "Memory was held back.")


def intent_from_memory_forgotten(
    at: Happening, *, item_kind: str, item_id: str = ""
) -> MemoryIntent:
    """Something was forgotten; what it was is not told, not even its id.

    `item_id` only tells two things apart that were forgotten at the same moment; no way leads back to it.
    """
    return _made(
        at,
        "memory.forgotten",
        {"item_kind": item_kind},
        "Something was forgotten.",
        f"{item_id}:{at.occurred_at.isoformat()}",
    )


def intent_from_conversation(
    at: Happening, *, change: ConversationChange, from_conversation_id: str | None = None
) -> MemoryIntent:
    """A conversation began, was left for a fresh one, or branched off."""
    payload = {"from_conversation_id": from_conversation_id}
    return _made(at, f"conversation.{change}", payload, f"The conversation was {change}.")


def intent_from_delivery(
    at: Happening,
    *,
    outcome: DeliveryOutcome,
    backend: str,
    operation: str,
    item_id: str,
    attempts: int,
    error: str | None = None,
) -> MemoryIntent:
    """A delivery was made, failed or was given up."""
    payload = {
        "backend": backend,
        "operation": operation,
        "item_id": item_id,
        "attempts": attempts,
        "error": error,
    }
    return _made(
        at,
        f"delivery.{outcome}",
        payload,
        f"A delivery to {backend}: {outcome}.",
        f"{backend}:{operation}:{item_id}:{attempts}:{at.occurred_at.isoformat()}",
    )


def intent_from_breaker(at: Happening, *, change: BreakerChange, backend: str) -> MemoryIntent:
    """A backend is left alone for a while, tried again, or well."""
    return _made(
        at,
        f"breaker.{change}",
        {"backend": backend},
        f"{backend}: {change}.",
        f"{backend}:{at.occurred_at.isoformat()}",
    )


def _made(
    at: Happening, key: str, payload: Mapping[str, Any], fallback_text: str, unique: str = ""
) -> MemoryIntent:
    return MemoryIntent(
        id=derived_id("int", at.owner_id, at.conversation_id or "", at.turn_id or "", key, unique),
        key=key,
        source_kind=form_of(key).source_kind,
        owner_id=at.owner_id,
        payload=payload,
        fallback_text=fallback_text,
        occurred_at=at.occurred_at,
        conversation_id=at.conversation_id,
        turn_id=at.turn_id,
    )


def _tool_name(name: str) -> str:
    """Give a tool's name as a key can hold it: a model may call what never was, by any name."""
    clean = (one if one.isalnum() or one in _NAME_MARKS else "_" for one in name)
    return "".join(clean)[:MAX_TOOL_NAME_CHARS] or "_"
