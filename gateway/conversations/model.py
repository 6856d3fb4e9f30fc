"""A conversation and its turns, as values."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from gateway.ids import ConversationId, TurnId, UserId

TurnState = Literal["queued", "running", "completed", "withdrawn"]
Unsettable = Literal["model", "app_code", "environment"]
"""What a conversation need not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What is kept of a conversation, its turns apart."""

    id: ConversationId
    user_id: UserId
    title: str
    model: str | None
    memory_enabled: bool
    case_memory: bool
    app_code: str | None
    environment: str | None
    session_id: str | None
    fork_at: str | None
    created_at: datetime
    last_activity_at: datetime
    turns: int
    """Turns that were accepted and not taken back."""
    root_id: ConversationId | None = None
    """The conversation that it was branched off from, the first of them; None: it began by itself."""

    @property
    def uses_cases(self) -> bool:
        """Whether its agent has case memory: a person switched it on, and memory is not off as a whole."""
        return self.memory_enabled and self.case_memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a person and what came of it."""

    id: TurnId
    conversation_id: ConversationId
    user_id: UserId
    seq: int
    state: TurnState
    message: str
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    result: dict[str, Any] | None = None
    """The turn result of the contract; None until it is completed."""
    session_id: str | None = None
    last_entry_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEvent:
    """One event of a turn's stream, as it is stored and sent."""

    seq: int
    """The order over all conversations."""
    conversation_id: ConversationId
    turn_id: TurnId
    n: int
    """From 1 within the turn, without gaps."""
    type: str
    data: str
    """JSON of the event's fields, `turn_id` and `conversation_id` among them."""

    @property
    def id(self) -> str:
        """The id under which a client resumes after this event."""
        return f"{self.turn_id}:{self.n}"


COMPLETED = "turn.completed"
"""The type of the last event of a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationChange:
    """What `PATCH` may set; a field that is None stays as it is."""

    title: str | None = None
    model: str | None = None
    memory_enabled: bool | None = None
    case_memory: bool | None = None
    app_code: str | None = None
    environment: str | None = None
    unset: Collection[Unsettable] = ()
    """What is to be as if it had never been set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some conversations, newest first, and where the next ones begin."""

    conversations: list[Conversation]
    next_cursor: str | None
