"""Reads ended turns from the chronicle, to make episodes of them."""

from collections.abc import Mapping
from typing import Any, Final

from memory.episodes.turn import CallStatus, ToolCall, Turn
from memory.intents.chronicle import Chronicle, IntentRecord
from memory.items.scope import LABELS

_STATUSES: Final[Mapping[str, CallStatus]] = {
    "ok": "ok",
    "error": "failed",
    "blocked": "denied",
    "interrupted": "interrupted",
}


async def read_turn(chronicle: Chronicle, turn_id: str) -> Turn | None:
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
    return ToolCall(
        name=str(payload.get("tool_name", "")),
        status=_STATUSES.get(str(payload.get("status")), "failed"),
        input=payload.get("args") or {},
        output=str(payload.get("result", "")),
    )
