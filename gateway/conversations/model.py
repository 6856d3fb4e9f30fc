"""A conversation and its turns, as values."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from gateway.ids import ConversationId, TurnId, UserId, new_conversation_id

TurnState = Literal["queued", "running", "completed", "withdrawn"]
Unsettable = Literal["model", "app_code", "environment"]
"""Fields that may be cleared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation without its turns."""

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
    """Number of turns that were accepted and not withdrawn."""
    root_id: ConversationId | None = None
    """For a fork: the first conversation of its line."""

    @property
    def uses_cases(self) -> bool:
        """True if its agent has case memory: both switches are on."""
        return self.memory_enabled and self.case_memory


def fresh_conversation(
    user_id: UserId, now: datetime, *, like: Conversation | None = None, title: str = ""
) -> Conversation:
    """Return a new conversation with the settings of the one that it follows, and no memory of it."""
    return Conversation(
        id=new_conversation_id(),
        user_id=user_id,
        title=title,
        model=like.model if like else None,
        memory_enabled=like.memory_enabled if like else True,
        case_memory=like.case_memory if like else False,
        app_code=like.app_code if like else None,
        environment=like.environment if like else None,
        session_id=None,
        fork_at=None,
        created_at=now,
        last_activity_at=now,
        turns=0,
    )


def forked_conversation(
    conversation: Conversation, last: "Turn | None", now: datetime
) -> Conversation:
    """Return a fork; `last` is the last turn that it remembers, if any left a session."""
    return replace(
        fresh_conversation(conversation.user_id, now, like=conversation, title=conversation.title),
        session_id=last.session_id if last else None,
        fork_at=last.last_entry_id if last else None,
        root_id=conversation.root_id or conversation.id,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a person and its result."""

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
    """One event of a turn, as it is stored and sent."""

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
        """The event id with which a client resumes after this event."""
        return f"{self.turn_id}:{self.n}"


COMPLETED = "turn.completed"
"""The type of the last event of a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationChange:
    """What `PATCH` sets; a field that is None stays as it is."""

    title: str | None = None
    model: str | None = None
    memory_enabled: bool | None = None
    case_memory: bool | None = None
    app_code: str | None = None
    environment: str | None = None
    unset: Collection[Unsettable] = ()
    """Fields to clear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some conversations, newest first, and the cursor of the next page."""

    conversations: list[Conversation]
    next_cursor: str | None
