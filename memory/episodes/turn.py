"""A turn as the source of an episode: message, tool calls, reply; read from the chronicle."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from memory.intents.chronicle import IntentRecord, SqlChronicle
from memory.items.scope import LABELS

CallStatus = Literal["ok", "failed", "denied", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call and its result."""

    name: str
    status: CallStatus
    input: Mapping[str, Any] = field(default_factory=dict)
    output: str = ""
    """Its result; the error of a failed call, the reason of a denied call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A finished turn."""

    turn_id: str
    conversation_id: str | None
    owner_id: str
    occurred_at: datetime
    message: str = ""
    reply: str = ""
    calls: tuple[ToolCall, ...] = ()
    intent_ids: tuple[str, ...] = ()
    recalled_ids: tuple[str, ...] = ()
    was_shown_forgotten: bool = False
    """True if an item that was in its prompt is forgotten."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Scope labels of its conversation."""


_STATUSES: Final[Mapping[str, CallStatus]] = {
    "ok": "ok",
    "error": "failed",
    "blocked": "denied",
    "interrupted": "interrupted",
}


async def read_turn(chronicle: SqlChronicle, turn_id: str) -> Turn | None:
    """Fold a turn's intents, in the order of recording, into a turn; None if nothing is left."""
    found = await chronicle.intents_of_turn(turn_id)
    records = [record for record in found if record.payload]
    if not records:
        return None
    first = records[0]
    payloads: dict[str, Mapping[str, Any]] = {record.key: record.payload for record in records}
    received = payloads.get("turn.received", {})
    labels = received.get("labels") or {}
    return Turn(
        turn_id=turn_id,
        conversation_id=first.conversation_id,
        owner_id=first.owner_id,
        occurred_at=first.occurred_at,
        message=str(received.get("message", "")),
        reply=str(payloads.get("llm.response", {}).get("text", "")),
        calls=tuple(_call(record) for record in records if record.source_kind == "tool"),
        intent_ids=tuple(record.id for record in records),
        recalled_ids=tuple(map(str, payloads.get("memory.injected", {}).get("ids", ()))),
        was_shown_forgotten=any(
            record.forgotten and record.key == "memory.injected" for record in found
        ),
        labels={name: str(labels[name]) for name in LABELS if labels.get(name)},
    )


def _call(record: IntentRecord) -> ToolCall:
    payload = record.payload
    status = _STATUSES.get(str(payload.get("status")), "failed")
    return ToolCall(
        name=str(payload.get("tool_name", "")),
        status="interrupted" if payload.get("has_begun") is False else status,
        input=payload.get("args") or {},
        output=str(payload.get("result", "")),
    )
