"""A turn as the source of an episode: message, tool calls, reply."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

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
