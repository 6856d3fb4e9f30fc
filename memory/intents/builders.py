"""Builders that make intents of what happened; nothing else makes intents.

Each takes a `Happening`: whose it is, where and when. Ids are derived from what happened, so that
reporting the same again, after a crash for example, has no effect. A payload is raw and lives no
longer than its intent. It is masked before it is shortened, since half a secret could not be
recognised any more.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypedDict, Unpack

from memory.intents.registry import (
    EXTENSION,
    MAX_TOOL_NAME_CHARS,
    IntentRefused,
    MemoryIntent,
    form_of,
)
from memory.items.ids import derived_id

_NAME_MARKS: Final = "_.:-/"
_SAVED: Final = "memory.saved"

ToolOutcome = Literal["ok", "blocked", "error", "interrupted", "not_begun"]
"""`blocked`: denied; `not_begun`: the turn was stopped before the call was allowed."""
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


class IntentLabels(TypedDict, total=False):
    """What a caller may say besides; it becomes extension fields."""

    project_id: str
    agent_id: str


happening_source: ContextVar[Callable[[], Happening] | None] = ContextVar("happening", default=None)
"""Returns the `Happening` of an intent that is built without one; set by `reporting`."""


def intent_from_turn_received(
    at: Happening, *, message: str, labels: Mapping[str, str] | None = None
) -> MemoryIntent:
    """A person's message was accepted."""
    return _intent(at, "turn.received", message=message, labels=dict(labels or {}))


def intent_from_turn_completed(
    at: Happening, *, outcome: str, stop_reason: str, reply: str, tool_calls: int, duration_ms: int
) -> MemoryIntent:
    """A turn ended."""
    return _intent(
        at,
        "turn.completed",
        outcome=outcome,
        stop_reason=stop_reason,
        reply=reply,
        tool_calls=tool_calls,
        duration_ms=duration_ms,
    )


def intent_from_turn_cut_off(
    at: Happening, *, outcome: str, stop_reason: str, message: str, tools: str, ended_by: str
) -> MemoryIntent:
    """A turn ended before the agent had finished: its session may not know how.

    `ended_by` is a sentence about what ended it.
    """
    ended = {"outcome": outcome, "stop_reason": stop_reason, "ended_by": ended_by}
    return _intent(at, "turn.cut_off", **ended, message=message, tools=tools)


def intent_from_doom_loop(at: Happening, *, tools: str) -> MemoryIntent:
    """The same calls were repeated until the gateway stopped the turn."""
    return _intent(at, "guard.doom_loop", tools=tools)


def intent_from_forced_summary(at: Happening, *, tools: str) -> MemoryIntent:
    """A run ended without text and was asked for a summary."""
    return _intent(at, "guard.forced_summary", tools=tools)


def intent_from_model_retries(at: Happening, *, count: int) -> MemoryIntent:
    """The agent asked the model's service again after failures."""
    return _intent(at, "guard.model_retries", count=count)


def intent_from_llm_response(
    at: Happening, *, text: str, model: str, number: int = 1
) -> MemoryIntent:
    """The model answered; `number` distinguishes a turn's answers."""
    return _intent(at, "llm.response", str(number), text=text, model=model)


def intent_from_tool_result(
    at: Happening | None = None,
    *,
    tool_name: str,
    status: ToolOutcome,
    args: Mapping[str, Any],
    result: str,
    tool_use_id: str = "",
    index: int = 0,
    duration_ms: int | None = None,
    **labels: Unpack[IntentLabels],
) -> MemoryIntent:
    """A tool call returned, was kept from running, or was interrupted.

    `index` is the call's number in its turn, since a model may repeat `tool_use_id`. `result` is
    what the call returned, the error, or why it did not run. Without `at`, whose it is and when
    comes from the `reporting` block around the call; outside of such a block `IntentRefused` is
    raised. A call without an id is identified by its moment.
    """
    at = at or _present()
    tool_use_id = tool_use_id or f"at {at.occurred_at.isoformat()}"
    name = _tool_name(tool_name)
    begun = {"has_begun": False} if status == "not_begun" else {}
    outcome = "blocked" if begun else status
    return _intent(
        at,
        f"tool.{name}.{outcome}",
        f"{index}:{tool_use_id}",
        tool_name=name,
        status=outcome,
        tool_use_id=tool_use_id,
        args=dict(args),
        result=result,
        duration_ms=duration_ms,
        **begun,
        **{f"{EXTENSION}{name}": label for name, label in labels.items()},
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
    allowed_by: Mapping[str, Any] | None = None,
) -> MemoryIntent:
    """The policy decided on a tool call; `index` as in `intent_from_tool_result`.

    `allowed_by` is the person's yes by which an allowed call passed, if any.
    """
    key = "permission.allowed" if allowed else "permission.denied"
    payload: dict[str, Any] = {"tool_name": tool_name, "tool_use_id": tool_use_id}
    if allowed_by is not None:
        payload["allowed_by"] = dict(allowed_by)
    return _intent(at, key, f"{index}:{tool_use_id}", **payload, rule=rule, reason=reason)


def intent_from_approval_requested(
    at: Happening, *, approval_id: str, tool_name: str, summary: str
) -> MemoryIntent:
    """A person was asked about a tool call."""
    payload = {"approval_id": approval_id, "tool_name": tool_name, "summary": summary}
    return _intent(at, "approval.requested", approval_id, **payload)


def intent_from_approval_resolved(
    at: Happening, *, approval_id: str, decision: str, by: str
) -> MemoryIntent:
    """A person answered, or nobody did in time."""
    payload = {"approval_id": approval_id, "decision": decision, "by": by}
    return _intent(at, "approval.resolved", approval_id, **payload)


def intent_from_memory_injected(
    at: Happening, *, ids: Sequence[str], titles: Sequence[str]
) -> MemoryIntent:
    """Remembered items were shown to the model."""
    return _intent(at, "memory.injected", ids=list(ids), titles=list(titles))


def intent_from_memory_suppressed(
    at: Happening, *, ids: Sequence[str], reasons: Sequence[str]
) -> MemoryIntent:
    """Remembered items were found and held back."""
    return _intent(at, "memory.suppressed", ids=list(ids), reasons=list(reasons))


def intent_from_memory_saved(
    at: Happening,
    *,
    item_kind: str,
    item_id: str,
    revision: int,
    text: str,
    origin: str,
    supersedes: Sequence[str] = (),
    evidence: str | None = None,
) -> MemoryIntent:
    """Something that a person told was saved, or changed; `supersedes` has the ids of what it
    replaced.
    """
    return _intent(
        at,
        _SAVED,
        f"{item_id}:{revision}",
        ids=[item_id],
        item_kind=item_kind,
        text=text,
        origin=origin,
        supersedes=list(supersedes),
        evidence=evidence,
    )


def id_of_memory_saved(
    owner_id: str, conversation_id: str | None, turn_id: str | None, item_id: str, revision: int
) -> str:
    """Return the id of the intent about a revision of an item that was saved in a turn."""
    return _id(owner_id, conversation_id, turn_id, _SAVED, f"{item_id}:{revision}")


def intent_from_memory_forgotten(
    at: Happening, *, item_kind: str, item_id: str = ""
) -> MemoryIntent:
    """Something was forgotten; the intent does not say what, not even by its id.

    `item_id` distinguishes two items that were forgotten at the same moment; it cannot be
    recovered.
    """
    unique = f"{item_id}:{at.occurred_at.isoformat()}"
    return _intent(at, "memory.forgotten", unique, item_kind=item_kind)


def intent_from_conversation(
    at: Happening, *, change: ConversationChange, from_conversation_id: str | None = None
) -> MemoryIntent:
    """A conversation began, was left for a fresh one, or was forked."""
    return _intent(at, f"conversation.{change}", from_conversation_id=from_conversation_id)


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
    return _intent(
        at,
        f"delivery.{outcome}",
        f"{backend}:{operation}:{item_id}:{attempts}:{at.occurred_at.isoformat()}",
        backend=backend,
        operation=operation,
        item_id=item_id,
        attempts=attempts,
        error=error,
    )


def intent_from_breaker(at: Happening, *, change: BreakerChange, backend: str) -> MemoryIntent:
    """A backend is left alone for a while, tried again, or works again."""
    unique = f"{backend}:{at.occurred_at.isoformat()}"
    return _intent(at, f"breaker.{change}", unique, backend=backend)


def _intent(at: Happening, key: str, unique: str = "", /, **payload: Any) -> MemoryIntent:
    return MemoryIntent(
        id=_id(at.owner_id, at.conversation_id, at.turn_id, key, unique),
        key=key,
        source_kind=form_of(key).source_kind,
        owner_id=at.owner_id,
        payload=payload,
        fallback_text=key,
        occurred_at=at.occurred_at,
        conversation_id=at.conversation_id,
        turn_id=at.turn_id,
    )


def _id(
    owner_id: str, conversation_id: str | None, turn_id: str | None, key: str, unique: str
) -> str:
    return derived_id("int", owner_id, conversation_id or "", turn_id or "", key, unique)


def _present() -> Happening:
    """Return whose the intent is that is built without a `Happening`, and when."""
    happening = happening_source.get()
    if happening is None:
        raise IntentRefused("An intent without a `Happening` is built within a `reporting` block.")
    return happening()


def _tool_name(name: str) -> str:
    """Return a tool's name with only the characters of a key: a model may call any name."""
    clean = (char if char.isalnum() or char in _NAME_MARKS else "_" for char in name)
    return "".join(clean)[:MAX_TOOL_NAME_CHARS] or "_"
