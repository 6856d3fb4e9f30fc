"""What the parts of the chat work with, and the one way to a user's conversation."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import anyio

from gateway.conversations.duty import Duty
from gateway.conversations.event_log import EventLog
from gateway.conversations.model import NO_QUOTA, Conversation, Quota, Turn
from gateway.conversations.outputs import OutputFiles
from gateway.conversations.sql.client_objects import ClientObjectStore
from gateway.conversations.sql.client_turns import ClientTurnStore
from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.sql.events import EventStore
from gateway.conversations.sql.file_changes import FileChangeStore
from gateway.conversations.sql.schedules import ScheduleStore
from gateway.conversations.sql.turns import TurnStore
from gateway.engine.pool import ClientPool
from gateway.engine.protocol import Engine
from gateway.errors import NotFound
from gateway.ids import ConversationId, UserId
from gateway.turns.approvals import ApprovalDesk
from gateway.turns.conversation_memory import ConversationMemory
from gateway.turns.lanes import Lanes
from gateway.turns.ownership import Ownership
from gateway.turns.turn_trace import BeginTrace, no_traces
from gateway.turns.worktrees import Worktrees
from gateway.users.model import Action
from memory.clock import Now

OnOpened = Callable[[Conversation], None]
"""Called with a conversation that somebody begins to look at."""


class RecordAct(Protocol):
    """Appends to the audit log what a user did to something."""

    async def __call__(self, actor: UserId, action: Action, subject: str, **details: str) -> None:
        """Raise `StoreUnavailable` if it cannot be stored."""


StartFields = Callable[[Turn, Conversation], dict[str, Any]]
"""Returns the fields of `turn.started` for a turn that is accepted into a free lane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatParts:
    """Stores, lanes and processes."""

    conversations: ConversationStore
    turns: TurnStore
    file_changes: FileChangeStore
    client_objects: ClientObjectStore
    client_turns: ClientTurnStore
    schedules: ScheduleStore
    events: EventStore
    outputs: OutputFiles
    log: EventLog
    lanes: Lanes
    ownership: Ownership
    pool: ClientPool
    engine: Engine
    approvals: ApprovalDesk
    worktrees: Worktrees
    memory: ConversationMemory
    max_turns: int
    now: Now
    record: RecordAct
    duty: Duty
    quota: Quota = NO_QUOTA
    on_opened: OnOpened | None = None
    begin_trace: BeginTrace = no_traces
    on_created: Callable[[], None] = lambda: None
    """Called when a conversation was stored without a turn that begins."""
    start_fields: StartFields | None = None
    """With it a message for a free lane is stored together with the start of its turn; without,
    each turn is queued first."""
    runs_schedules: bool = False
    max_schedules: int = 20
    """Of one user."""


class ConversationAccess:
    """Finds conversations for their users; one that is being deleted is not found.

    Where several servers share the database, one that another server holds is not used here:
    `HeldElsewhere` is raised, before anything has happened, and the request is that server's.
    """

    def __init__(self, parts: ChatParts) -> None:
        self._conversations = parts.conversations
        self._ownership = parts.ownership
        self._on_opened = parts.on_opened
        self._deleting: set[ConversationId] = set()
        self._occupied: dict[ConversationId, anyio.Event] = {}

    async def find_stored(self, user_id: UserId, conversation_id: str) -> Conversation:
        """Return the conversation as it is stored, whoever holds it.

        Raise `NotFound` if there is no such conversation, or it is another user's.
        """
        found = await self._conversations.get(ConversationId(conversation_id), user_id)
        if found is None or found.id in self._deleting:
            raise NotFound("There is no such conversation.")
        return found

    async def find(self, user_id: UserId, conversation_id: str) -> Conversation:
        """Return the conversation. Raise `HeldElsewhere`, and as `find_stored` does."""
        found = await self.find_stored(user_id, conversation_id)
        await self._ownership.require_here(found.id)
        return found

    async def open(self, user_id: UserId, conversation_id: str) -> Conversation:
        """Find a conversation that somebody begins to look at, and may write to next."""
        found = await self.find(user_id, conversation_id)
        self._note_opened(found)
        return found

    async def open_events(self, user_id: UserId, conversation_id: str) -> Conversation:
        """Find a conversation whose events somebody begins to read, whoever holds it."""
        found = await self.find_stored(user_id, conversation_id)
        if self._on_opened is not None and await self._ownership.elsewhere(found.id) is None:
            self._note_opened(found)
        return found

    def _note_opened(self, found: Conversation) -> None:
        if self._on_opened is not None and found.id not in self._occupied:
            self._on_opened(found)

    async def require_here(self, conversation_id: ConversationId) -> None:
        """Raise `HeldElsewhere` if another server holds a conversation."""
        await self._ownership.require_here(conversation_id)

    @contextmanager
    def hidden(self, conversation_id: ConversationId) -> Iterator[None]:
        """Hide a conversation while it is being deleted. Raise `NotFound` if it is hidden."""
        if conversation_id in self._deleting:
            raise NotFound("There is no such conversation.")
        self._deleting.add(conversation_id)
        try:
            yield
        finally:
            self._deleting.discard(conversation_id)

    @contextmanager
    def occupied(self, conversation_id: ConversationId) -> Iterator[None]:
        """Hold messages to a conversation back while the block runs, so that no turn begins and no
        agent is woken.
        """
        self._occupied[conversation_id] = anyio.Event()
        try:
            yield
        finally:
            self._occupied.pop(conversation_id).set()

    def occupation(self, conversation_id: str | None) -> anyio.Event | None:
        """Return what is set when a conversation is no longer occupied; None if it is not."""
        return self._occupied.get(ConversationId(conversation_id or ""))
