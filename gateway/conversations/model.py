"""A conversation and its turns, as values."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal, cast, get_args

from gateway.conversations.schedules import ScheduledRun
from gateway.ids import ApprovalId, ConversationId, TurnId, UserId, new_conversation_id

TurnState = Literal["queued", "running", "completed", "withdrawn"]
QuotaLimit = Literal["running_turns", "live_agents", "daily_turns", "daily_usd"]
"""The names of the limits of a `Quota`."""
Unsettable = Literal["model", "app_code", "environment", "project_id"]
"""Fields that may be cleared."""

_CLEAR_COMMANDS: Final = frozenset({"/clear", "／clear"})
"""Chinese keyboards type the wide slash."""
_TITLE_CHARS = 80
_QUOTED = "\n\n--- "
"""How a part begins that a client quotes: its instructions, earlier messages, a file."""


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
    project_id: str | None = None
    """The scope of recall and of what its turns write; None: no project."""
    pinned: bool = False
    """True if the user keeps it at the top of the list, with all branches of its line."""

    @property
    def line_id(self) -> ConversationId:
        """The first conversation of its line: the one that all its branches come from."""
        return self.root_id or self.id

    @property
    def uses_cases(self) -> bool:
        """True if its agent has case memory: both switches are on."""
        return self.memory_enabled and self.case_memory


def fresh_conversation(
    user_id: UserId,
    now: datetime,
    *,
    like: Conversation | None = None,
    title: str = "",
    project_id: str | None = None,
) -> Conversation:
    """Return a new conversation with the settings of the one that it follows, and no
    memory of it.
    """
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
        project_id=project_id or (like.project_id if like else None),
    )


def forked_conversation(
    conversation: Conversation, last: "Turn | None", now: datetime, *, title: str
) -> Conversation:
    """Return a fork; `last` is the last turn that it remembers, if any left a session."""
    return replace(
        fresh_conversation(conversation.user_id, now, like=conversation, title=title),
        session_id=last.session_id if last else None,
        fork_at=last.last_entry_id if last else None,
        root_id=conversation.line_id,
        pinned=conversation.pinned,
    )


def starts_afresh(message: str) -> bool:
    """Return whether a message asks for a new conversation."""
    return message.strip().lower() in _CLEAR_COMMANDS


def title_of(message: str) -> str:
    """Return a conversation's first title: the start of its first message, on one line, without
    what a client quotes behind the person's words.

    Empty for `/clear`, which begins nothing: the next message makes the title.
    """
    line = " ".join((message.partition(_QUOTED)[0].strip() or message).split())
    if starts_afresh(line):
        return ""
    return line if len(line) <= _TITLE_CHARS else f"{line[: _TITLE_CHARS - 1]}…"


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
    approval_id: ApprovalId | None = None
    """The approval whose answer started it; None: a message did."""
    schedule: ScheduledRun | None = None
    """The schedule that sent its message; None: a client did."""
    epoch: int = 0
    """Of the lease under which it was accepted or ended; 0: nobody held its conversation."""


ApprovalState = Literal["open", "answered", "withdrawn", "lost"]
"""`open`: can be answered. `withdrawn`: its turn was stopped. `lost`: the same call was asked about
again."""
Decision = Literal["allow", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A call that a person is asked about."""

    id: ApprovalId
    user_id: UserId
    conversation_id: ConversationId
    turn_id: TurnId
    call_index: int
    """The call's number in its turn."""
    tool_use_id: str
    name: str
    summary: str
    language: str
    """Of the turn's message."""
    input: dict[str, Any]
    """What would run, whole, without the secrets that the server knows; empty when it is no longer
    needed."""
    hidden: Sequence[Mapping[str, Any]] = ()
    """Where such secrets were: `path` and `chars`."""
    fingerprint: str
    """Identifies what the call does."""
    created_at: datetime
    state: ApprovalState = "open"
    decision: Decision | None = None
    message: str = ""
    """The person's word to the agent."""
    answers: Mapping[str, str] | None = None
    """What the person answered, by the agent's questions."""
    ended_at: datetime | None = None
    question: Mapping[str, Any] | None = None
    """What clients are shown besides while its run waits for the answer; None once it is not open,
    and of earlier servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswer:
    """A person's answer to an approval."""

    approval_id: ApprovalId
    decision: Decision
    message: str
    answers: Mapping[str, str] | None
    at: datetime
    keeps_input: bool = True
    """False: nothing runs because of it, so the input is not needed any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTurn:
    """A turn of a client of another protocol, which sends its history instead of our ids."""

    user_id: UserId
    thread: str
    """The client's own name of the conversation; empty if it gave none."""
    history: str
    """A hash of the person's messages up to and with that of the turn."""
    turn_id: TurnId
    conversation_id: ConversationId


ClientObjectKind = Literal["agent", "environment", "session"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientObject:
    """What a client of another protocol made, or what a conversation has for such clients."""

    id: str
    """That of a session is its conversation's."""
    user_id: UserId
    kind: ClientObjectKind
    data: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None
    conversation_id: ConversationId | None = None
    """Of a session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEvent:
    """One event of a turn, as it is stored and sent."""

    seq: int
    """The order within the conversation, not without gaps; 0 for an announcement."""
    conversation_id: ConversationId
    turn_id: TurnId
    n: int
    """From 1 within the turn, without gaps; 0 for an announcement."""
    type: str
    data: str
    """JSON of the event's fields, `turn_id` and `conversation_id` among them."""

    @property
    def id(self) -> str:
        """The event id with which a client resumes after this event."""
        return f"{self.turn_id}:{self.n}"


COMPLETED = "turn.completed"
"""The type of the last event of a turn."""

CHANGED = "conversation.changed"
"""The type of an announcement: a stored result has changed. It belongs to no turn, has no id and is
not stored.
"""

DELTAS = frozenset({"text.delta", "thinking.delta"})
"""The types of events that are a piece of text; pieces that follow each other may be joined."""

UNSYNCED = DELTAS | {"memory.injected"}
"""The types of events that a cut of the power may lose. The result of a turn that ends repeats
them; that of a turn which the cut ended may lack them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationChange:
    """What `PATCH` sets; a field that is None stays as it is."""

    title: str | None = None
    model: str | None = None
    memory_enabled: bool | None = None
    case_memory: bool | None = None
    app_code: str | None = None
    environment: str | None = None
    project_id: str | None = None
    pinned: bool | None = None
    """Applies to all branches of its line."""
    unset: Collection[Unsettable] = ()
    """Fields to clear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some conversations, newest first, and the cursor of the next page."""

    conversations: list[Conversation]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Another conversation of the same line, from where it differs."""

    after_turn_id: TurnId | None
    """The last turn that both have, by its id in the conversation asked about; None: they share
    none."""
    conversation_id: ConversationId
    turn_id: TurnId | None
    message: str | None
    """The first turn that differs, and its message; None if the branch ends where it began."""
    created_at: datetime
    """When that message was sent, or the branch was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What a conversation's own turns have used; those that a fork copied are its source's."""

    turns: int
    input_tokens: int
    cached_tokens: int
    """What the model read beside `input_tokens`: out of its service's cache, or into it."""
    output_tokens: int
    cost_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What one user may use; None: there is no limit."""

    running_turns: int | None = None
    """Turns that wait or run."""
    live_agents: int | None = None
    """Conversations with such turns, each of which needs an agent; an idle agent is nobody's."""
    daily_turns: int | None = None
    daily_usd: float | None = None
    """A turn that is accepted below it may go beyond."""

    @property
    def is_set(self) -> bool:
        """True if there is a limit."""
        return self != NO_QUOTA

    def reached_by(self, used: Mapping[QuotaLimit, float]) -> QuotaLimit | None:
        """Return the first limit that leaves no room for a turn beside what is used, or None.

        What `used` does not name is not judged; the order is that of `QuotaLimit`.
        """
        for name in get_args(QuotaLimit):
            most = getattr(self, name)
            if name in used and most is not None and used[name] >= most:
                return cast(QuotaLimit, name)
        return None


NO_QUOTA = Quota()


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDay:
    """What a user has used on one day of UTC; what was deleted since counts."""

    turns: int = 0
    cost_usd: float = 0.0
    """Of the turns that ended on this day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMatch:
    """Where a conversation holds a searched text, with what stands around it."""

    turn_id: TurnId
    before: str
    text: str
    """As it is written there."""
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """How far a conversation has come."""

    last_seq: int
    """The `seq` of its last event; 0 if it has none."""
    ended: TurnId | None
    """The last turn that has ended."""
