"""A turn as an episode is made of it: what was asked, which calls were made, what was answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

CallStatus = Literal["ok", "failed", "denied", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call and what came of it."""

    name: str
    status: CallStatus
    input: Mapping[str, Any] = field(default_factory=dict)
    output: str = ""
    """What it gave; of a failed one the error, of a denied one the reason."""


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
    recalled_texts: tuple[str, ...] = ()
    was_shown_forgotten: bool = False
    """Whether something was put into its prompt that is forgotten by now."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of its conversation, as a scope has them."""
