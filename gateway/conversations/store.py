"""The protocols of the stores of conversations, turns and events.

SQLite implements them; another store must pass the same suites (`tests/conformance`). Times are
aware and kept to the millisecond. Texts are any Unicode without lone surrogates. Reads are
independent values. Every write is atomic, whenever it is cancelled or the process is killed. Every
method raises `memory.errors.StoreUnavailable` if the store cannot be read or written.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Protocol

from gateway.conversations.leases import NOBODY, Node
from gateway.conversations.model import (
    NO_QUOTA,
    Approval,
    ApprovalAnswer,
    Branch,
    ClientObject,
    ClientObjectKind,
    ClientTurn,
    Conversation,
    ConversationChange,
    Head,
    Page,
    Quota,
    QuotaLimit,
    Spending,
    TextMatch,
    Turn,
    TurnEvent,
    UserDay,
)
from gateway.ids import ApprovalId, ConversationId, TurnId, UserId
from memory.record.index import TurnChange

KEY_OUTLIVES = timedelta(days=7)
"""How long at least an idempotency key is known after its turn was deleted."""


MAX_SHOWN_TURNS = 100
"""In how many turns of a session memory looks for what it has shown; older ones may be
summarised."""


class UnknownCursor(ValueError):
    """A cursor that this user was not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """A client's key for a request, and a hash of the request."""

    key: str
    request_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedTurn:
    """The turn of an idempotency key."""

    turn_id: TurnId
    request_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedChange:
    """A change that the record has not taken over yet."""

    seq: int
    change: TurnChange


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTurn:
    """A turn that an agent's session holds."""

    turn_id: str
    """For a copy in a fork: the id of the turn that was copied."""
    shown: Mapping[str, int]
    """The items that memory showed in it, with their revisions."""


class ConversationStore(Protocol):
    """Conversations without their turns."""

    async def create(self, conversation: Conversation) -> None:
        """Add a conversation. Its `turns` starts at 0 and follows the turns that are written.

        Raise `StoreConflict` if its id is taken.
        """

    async def get(self, conversation_id: ConversationId, user_id: UserId) -> Conversation | None:
        """Return the conversation; None if there is none of that id or it is another user's."""

    async def count(self) -> int:
        """Return how many conversations there are, of all users."""

    async def missing(self, ids: Sequence[ConversationId]) -> Sequence[ConversationId]:
        """Return those of some ids that no conversation has, of any user."""

    async def busy(self, ids: Sequence[ConversationId]) -> Collection[ConversationId]:
        """Return those of some conversations in which a turn runs or waits."""

    async def page(
        self, user_id: UserId, *, limit: int, cursor: str | None = None, query: str | None = None
    ) -> Page:
        """List a user's conversations by last activity, newest first; `limit` is at least 1.

        `query` keeps those whose title, messages (withdrawn ones apart) or replies hold it as it
        stands, letter case ignored in all scripts. Raise `UnknownCursor` if this user was not given
        such a cursor.
        """

    async def pinned(self, user_id: UserId) -> Sequence[Conversation]:
        """List a user's pinned conversations by last activity, newest first."""

    async def matches(
        self, conversation_ids: Sequence[ConversationId], query: str
    ) -> Mapping[ConversationId, TextMatch]:
        """Return where each conversation holds `query`, in its latest turn that does.

        A conversation that holds it in its title alone is left out.
        """

    async def find(
        self, conversation_id: ConversationId, query: str, *, limit: int
    ) -> Sequence[TextMatch]:
        """Return the first place in each turn whose message or reply holds `query`, the latest turn
        first.
        """

    async def branches(self, conversation: Conversation) -> Sequence[Branch]:
        """List the other branches of the conversation's line, oldest first.

        Of those that go on alike the one with the latest activity stands for all.
        """

    async def change(self, conversation_id: ConversationId, change: ConversationChange) -> None:
        """Apply a change; no error if the conversation is gone."""

    async def bind_session(
        self, conversation_id: ConversationId, session_id: str | None, *, epoch: int = 0
    ) -> None:
        """Set the agent session that the model's memory is in; clears a pending fork.

        A cut of the power may lose it until a synced write follows, as that of the turn's ending
        does. Raise `LeaseLost` if the conversation has another epoch.
        """

    async def own_sessions(self, conversation_id: ConversationId) -> Sequence[str]:
        """Return the agent sessions that only this conversation and its turns refer to."""

    async def delete(self, conversation_id: ConversationId, at: datetime) -> None:
        """Delete it with its turns and events; no error if it is gone.

        The idempotency keys of its turns stay, so that none of them runs anew. They go when
        something is deleted more than `KEY_OUTLIVES` later.
        """


class QuotaReached(Exception):
    """The user may not have another turn."""

    def __init__(self, limit: QuotaLimit, quota: Quota) -> None:
        super().__init__(limit)
        self.limit = limit
        self.quota = quota
        """The user's, with their own limits."""


class TurnStore(Protocol):
    """Turns: the queue, the running ones, the history."""

    async def accept(
        self,
        turn: Turn,
        *,
        create: Conversation | None = None,
        key: IdempotencyKey | None = None,
        events: Sequence[TurnEvent] = (),
        answer: ApprovalAnswer | None = None,
        project_id: str | None = None,
        quota: Quota = NO_QUOTA,
        node: Node | None = None,
    ) -> Turn:
        """Store a queued or running turn with its first events, atomically.

        `create` is stored with it, so is `answer`, the answer that starts the turn, and so is
        `project_id` as the conversation's, unless it is None. The turn's `seq` is assigned here,
        from 1 within its conversation without gaps. The conversation's last activity moves, never
        back, and an empty title is set from the message. Raise `StoreConflict` if the key or an id
        is taken, there is no such conversation, or the approval that is answered is not open,
        `QuotaReached` if the user's quota allows no further turn (their own limits, and for the
        others those of `quota`), and `LeaseLost` if the conversation has another epoch than the
        turn. A `node` takes the conversation that it creates, and the turn gets its epoch; None:
        nobody takes it.
        """

    async def used_on(self, user_id: UserId, day: date) -> UserDay:
        """Return what a user has used on a day of UTC."""

    async def quota_of(self, user_id: UserId, default: Quota) -> Quota:
        """Return a user's quota: their own limits, and for the others those of `default`."""

    async def count_unfinished(self, user_id: UserId) -> int:
        """Return how many turns of a user wait or run."""

    async def count_at_work(self, user_id: UserId) -> int:
        """Return in how many conversations of a user turns wait or run."""

    async def find_key(self, user_id: UserId, key: str) -> KeyedTurn | None:
        """Return the turn of a user's key, also if it was deleted; or None."""

    async def withdraw_key(self, user_id: UserId, key: str, at: datetime) -> None:
        """Have no message taken under a key from now on; its `KeyedTurn` has an empty id then.

        Raise `StoreConflict` if one was taken, or the key was withdrawn.
        """

    async def get(self, turn_id: TurnId) -> Turn | None:
        """Return the turn, or None."""

    async def start(self, turn_id: TurnId, at: datetime, *, epoch: int = 0) -> None:
        """Mark a queued turn as running; one that is not queued stays as it is, and so does one
        whose conversation has another epoch.
        """

    async def finish(
        self,
        turns: Sequence[Turn],
        events: Sequence[TurnEvent],
        *,
        epochs: Mapping[ConversationId, int] = NOBODY,
        is_synced: bool = True,
    ) -> Collection[ConversationId]:
        """Store how turns ended (state, times, result, session) and events, all or none.

        The conversations' last activity moves. Idempotent; a turn that is gone is left out. If not
        `is_synced`, a cut of the power, not the end of the process, may lose it until a synced
        write follows. Raise `StoreConflict` if an event's `seq` in its conversation, or its `n` in
        its turn, is another's. Conversations are fenced as in `EventStore.append`; turns get their
        epoch.
        """

    async def add_notice(self, turn_id: TurnId, notice: Mapping[str, Any]) -> bool:
        """Add a notice to the result of a completed turn; return False if there is none.

        The turn's last event has it from then on, too.
        """

    async def unfinished(
        self,
        on_damaged: Callable[[], None] = lambda: None,
        *,
        of: ConversationId | None = None,
    ) -> Sequence[Turn]:
        """List all queued and running turns, or those `of` a conversation, for recovery.

        Each conversation's in the order in which they were accepted, whatever the clock said. One
        that is damaged is left out, and `on_damaged` called for it; if its result alone is, it has
        none.
        """

    async def history(
        self, conversation_id: ConversationId, *, limit: int, before_seq: int | None = None
    ) -> Sequence[Turn]:
        """List the last `limit` turns (before `before_seq`) that were not withdrawn, oldest first.

        One that is damaged is left out.
        """

    async def in_session(self, conversation: Conversation) -> Sequence[SessionTurn]:
        """List the last completed turns that the conversation's agent has word for word, oldest
        first.

        At most `MAX_SHOWN_TURNS`; none up to the last one in which the session was summarised.
        """

    async def spending(self, conversation_id: ConversationId) -> Spending:
        """Return what the conversation's completed turns have used."""

    async def fork_point(self, conversation_id: ConversationId, until_seq: int) -> Turn | None:
        """Return the last turn up to `until_seq` that left an agent session and an entry in it."""

    async def copy_history(
        self, source: ConversationId, until_seq: int, target: Conversation
    ) -> None:
        """Create `target` with copies of the completed turns up to `until_seq`, ids their own.

        The copies keep their order, times and sessions, and belong to `target`'s user. Events are
        not copied. Raise `StoreConflict` if the target's id is taken.
        """


class RecordQueue(Protocol):
    """Turns that ended, changed or went since memory's record was brought up to date.

    They are noted in the transaction that changes them. A turn that a fork copied is there once.
    """

    async def last_seq(self) -> int:
        """Return the `seq` of the last change that was ever noted; 0 if there was none."""

    async def newest(
        self, *, after: int = 0, only_deleted: bool = False, limit: int
    ) -> Sequence[QueuedChange]:
        """List changes with a higher `seq`, newest first, each with its turn as it is now."""

    async def done(self, changes: Sequence[QueuedChange]) -> None:
        """Drop changes that are in the record; those of the same turns that came since stay.

        A cut of the power may bring them back.
        """

    async def add_all(self) -> None:
        """Note every completed turn, the newest one last."""


class FileChangeStore(Protocol):
    """What turns changed in the workspace."""

    async def put(self, turn_id: TurnId, changes: dict[str, Any], *, epoch: int = 0) -> None:
        """Store a turn's changes, a JSON object; replaces earlier ones. No error if the turn is
        gone. Raise `LeaseLost` if its conversation has another epoch.

        They go with their turn, and a fork copies them. A cut of the power may lose them until the
        next `TurnStore.finish`.
        """

    async def get(self, turn_id: TurnId) -> dict[str, Any] | None:
        """Return a turn's changes; None if none were stored."""


class ClientTurnStore(Protocol):
    """The turns of clients that send their history. They go with their conversation."""

    async def add(self, turn: ClientTurn) -> None:
        """Add a turn; nothing happens if its conversation is gone."""

    async def find(
        self, user_id: UserId, thread: str, history: str | None, *, limit: int
    ) -> Sequence[ClientTurn]:
        """Return a user's turns of a thread with that history, or with any, newest first."""


class ClientObjectStore(Protocol):
    """What clients of another protocol made. What belongs to a conversation goes with it."""

    async def put(self, thing: ClientObject) -> None:
        """Add an object, or change its data and times; nothing happens if its conversation is
        gone, or the id is another user's.
        """

    async def get(self, user_id: UserId, kind: ClientObjectKind, id_: str) -> ClientObject | None:
        """Return the object; None if there is none of that id, or it is another user's."""

    async def listed(
        self, user_id: UserId, kind: ClientObjectKind, *, limit: int, after: str = ""
    ) -> Sequence[ClientObject]:
        """List a user's objects, newest first; with `after` those older than that one."""


class ApprovalStore(Protocol):
    """What persons are asked about calls. Approvals go with their conversation.

    When a turn is completed, the input of its approvals that are not open is dropped, and that of
    the approval whose answer started it. When a turn is withdrawn, the approval whose answer
    started it is open again. What takes an `epoch` raises `LeaseLost` if the conversation has
    another one.
    """

    async def add(self, approval: Approval, *, epoch: int = 0) -> None:
        """Store an open approval.

        Open ones of earlier turns of the conversation with the same fingerprint become `lost`.
        """

    async def get(self, approval_id: ApprovalId, user_id: UserId) -> Approval | None:
        """Return the approval; None if there is none of that id or it is another user's."""

    async def answer(self, answer: ApprovalAnswer) -> bool:
        """Store an answer; return False, and change nothing, if the approval is not open."""

    async def extend(
        self, approval_id: ApprovalId, question: Mapping[str, Any], *, epoch: int = 0
    ) -> None:
        """Replace the question of an open approval; any other stays as it is."""

    async def withdraw(self, approval_id: ApprovalId, at: datetime, *, epoch: int = 0) -> None:
        """Mark an open approval as withdrawn; any other stays as it is."""

    async def reopen(self, approval_id: ApprovalId, *, epoch: int = 0) -> None:
        """Take an answer back that had no effect; one that is not answered stays as it is."""

    async def listed(
        self, user_id: UserId, conversation_id: ConversationId | None, *, lost_since: datetime
    ) -> Sequence[Approval]:
        """List a user's open approvals, and those lost since a moment, oldest first."""

    async def asked_elsewhere(self, user_id: UserId, node: Node) -> Collection[ApprovalId]:
        """Return a user's open approvals whose turns run at other nodes."""

    async def of_turn(self, turn_id: TurnId) -> Sequence[Approval]:
        """List the approvals of a turn's calls, oldest first."""


class EventStore(Protocol):
    """The events of all turns; those of a conversation are in one order."""

    async def last_seq(self, conversation_id: ConversationId) -> int:
        """Return the `seq` of a conversation's last event; 0 if it has none."""

    async def heads(
        self, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Head]:
        """Return how far conversations have come, without those that are gone."""

    async def set_aside(self) -> None:
        """Move events out of the way whose damaged place would keep others from being stored."""

    async def append(
        self,
        events: Sequence[TurnEvent],
        *,
        epochs: Mapping[ConversationId, int] = NOBODY,
        is_synced: bool = True,
    ) -> Collection[ConversationId]:
        """Store events, all or none; each carries its `seq`, higher than any stored before in its
        conversation.

        Nothing is stored of the conversations that are returned: they have another epoch than
        `epochs` says, which is 0 for those that it does not name.

        Idempotent: an event that is stored already is left as it is. Events of a conversation that
        is gone are left out. `is_synced` as in `TurnStore.finish`. Raise `StoreConflict` if an
        event's `seq` in its conversation, or its `n` in its turn, is another's.
        """

    async def last_n(self, turn_id: TurnId) -> int:
        """Return the highest `n` of a turn; 0 if it has no events."""

    async def find(self, turn_id: TurnId, n: int) -> int | None:
        """Return the `seq` of one event, or None."""

    async def after(
        self,
        conversation_id: ConversationId,
        seq: int,
        *,
        limit: int,
        turn_id: TurnId | None = None,
    ) -> Sequence[TurnEvent]:
        """List a conversation's (or one turn's) events after `seq`, in order, at most `limit`.

        One that cannot be read is left out.
        """

    async def after_each(
        self, last_seqs: Mapping[ConversationId, int], *, limit: int
    ) -> Sequence[TurnEvent]:
        """List the events of several conversations after the `seq` of each, at most `limit` of
        all of them: a conversation's are together, and in order.

        Raise `StoreDamaged` if one cannot be read.
        """

    async def of_call(self, turn_id: TurnId, index: int) -> Sequence[TurnEvent]:
        """List the `tool.started` and `tool.finished` events of the call `index` of a turn, in
        order.

        Of a turn that a fork copied, those of the turn that was copied first; none if it was
        deleted. Events without an `index` are listed with every call.
        """
