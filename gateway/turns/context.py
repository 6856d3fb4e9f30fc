"""One turn in progress: what all turns share, and what is known of this one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Final

import anyio

from gateway.conversations.event_log import EventLog, TurnEvents
from gateway.conversations.model import Conversation, Turn
from gateway.conversations.outputs import OutputFiles
from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.sql.file_changes import FileChangeStore
from gateway.conversations.sql.turns import TurnStore
from gateway.engine.pool import ClientPool
from gateway.journal.writer import Journal, TurnJournal
from gateway.observability.metrics import Metrics
from gateway.turns.approvals import ApprovalDesk
from gateway.turns.call_review import CallReviewer
from gateway.turns.control import TurnControl
from gateway.turns.evidence import Evidence, Notice
from gateway.turns.file_changes import TurnFileChanges
from gateway.turns.further_tools import FurtherTools
from gateway.turns.sanitizer import Mask, OutputSanitizer
from gateway.turns.sentences import Language, language_of, say
from gateway.turns.turn_memory import TurnChronicle, TurnMemory
from gateway.turns.turn_trace import NO_TRACE, TurnTrace
from gateway.turns.workspaces import OpenWorkspace, OpenWorkspaces
from gateway.turns.worktrees import Worktrees
from memory.clock import Now

_NO_FIELDS: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLimits:
    """The bounds of a turn."""

    timeout_s: float
    doom_loop_threshold: int
    interrupt_grace_s: float
    recall_deadline_s: float
    model_silence_s: float
    agent_steps: int
    """The most answers of the model, those of sub-agents included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnParts:
    """What all turns work with; assembled once by `gateway.assemble`."""

    turns: TurnStore
    conversations: ConversationStore
    file_changes: FileChangeStore
    outputs: OutputFiles
    log: EventLog
    pool: ClientPool
    memory: TurnMemory
    workspaces: OpenWorkspaces
    worktrees: Worktrees
    shows_pictures: bool
    """The model sees the pictures that a message names."""
    further_tools: FurtherTools
    approvals: ApprovalDesk
    ask_changes: bool
    """Approvals are on: a person is asked about each change."""
    reviewer: CallReviewer | None
    """Answers in a person's place where it may; None: the person is always asked."""
    is_confined: bool
    """A wall of the kernel's confines the agent and whatever it starts to the workspace."""
    journal: Journal
    metrics: Metrics
    mask: Mask
    secrets: Sequence[str]
    """Values that the server knows as secrets."""
    default_model: str | None
    charges: bool
    """True if the model costs money: the demo model does not, whatever the agent program
    calculates."""
    limits: TurnLimits
    now: Now
    turn_ended: Callable[[Turn], None] = lambda _: None
    """Called with each turn that ended in order, when its completion is stored."""


@dataclass(slots=True, kw_only=True)
class TurnContext:
    """A turn, its outputs (events, journal, chronicle) and the evidence so far."""

    parts: TurnParts
    turn: Turn
    conversation: Conversation
    """As it was when the turn began."""
    workspace: OpenWorkspace
    events: TurnEvents
    control: TurnControl
    sanitizer: OutputSanitizer
    evidence: Evidence
    started_at: datetime
    trace: TurnTrace = NO_TRACE
    untrusted: str = ""
    """What of the workspace's configuration kept the agent from starting, in words."""
    is_over: bool = False
    """Set when the result is made: nothing is emitted after the turn's last event."""
    masked: dict[str, str] = field(default_factory=dict)
    """Blocks of text, and what was shown of them."""
    call_seen: anyio.Event = field(default_factory=anyio.Event)
    """Set, and replaced, at each tool call that the run's reader has reached."""
    file_changes: TurnFileChanges = field(init=False)
    language: Language = field(init=False)
    journal: TurnJournal = field(init=False)
    chronicle: TurnChronicle = field(init=False)
    _begun_s: float = field(default_factory=anyio.current_time, init=False)

    def __post_init__(self) -> None:
        self.file_changes = TurnFileChanges(self.workspace.root, self.sanitizer)
        self.language = language_of(self.turn.message, self.conversation.title)
        memory = self.parts.memory
        self.chronicle = TurnChronicle(
            memory,
            self.turn,
            is_on=self.conversation.memory_enabled,
            is_still_on=self.has_memory_on,
            guard=memory.guard_of(self.events),
        )
        self.journal = self.parts.journal.open(
            self.turn.conversation_id,
            self.turn.id,
            self.started_at,
            shown=str if self.workspace.user_id is None else self.workspace.paths.shown,
        )

    async def has_memory_on(self) -> bool:
        """Return whether memory is on for the conversation now, which may be deleted.

        Raise `StoreUnavailable` if that cannot be read.
        """
        conversation = await self._stored_conversation()
        return conversation is not None and conversation.memory_enabled

    async def has_cases_on(self) -> bool:
        """Return whether the memory of cases is on for the conversation now; see
        `has_memory_on`.
        """
        conversation = await self._stored_conversation()
        return conversation is not None and conversation.uses_cases

    async def _stored_conversation(self) -> Conversation | None:
        return await self.parts.conversations.get(self.conversation.id, self.turn.user_id)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the turn began, by the event loop's monotonic clock."""
        return anyio.current_time() - self._begun_s

    def say(self, key: str, **values: object) -> str:
        """Return a sentence in the person's language."""
        return say(self.language, key, **values)

    def notice(self, code: str, fields: Mapping[str, int] = _NO_FIELDS, **values: object) -> None:
        """Report something to the person, now and in the turn result, in the sentence `code`.

        `fields` are further fields of the event.
        """
        self.add_notice(Notice(code, self.say(code, **values)), fields)

    def add_notice(self, notice: Notice, fields: Mapping[str, int] = _NO_FIELDS) -> None:
        """Report a notice, now and in the turn result."""
        self.evidence.notices.append(notice)
        self.events.emit("notice", code=notice.code, message=notice.message, **fields)
