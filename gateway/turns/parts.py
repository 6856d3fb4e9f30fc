"""What turns are made of beside themselves, put together once by `gateway.assemble`."""

from dataclasses import dataclass
from pathlib import PurePath

from gateway.conversations.event_log import EventLog
from gateway.conversations.store import ConversationStore, TurnStore
from gateway.engine.pool import ClientPool
from gateway.journal import Journal
from gateway.observability.metrics import Metrics
from gateway.observability.paths import PathView
from gateway.turns.approvals import ApprovalDesk
from gateway.turns.gate import Policy
from gateway.turns.sanitizer import Mask
from gateway.turns.turn_memory import TurnMemory
from memory.clock import Now


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLimits:
    """What bounds a turn."""

    timeout_s: float
    doom_loop_threshold: int
    interrupt_grace_s: float
    recall_deadline_s: float
    model_silence_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnParts:
    """What every turn works with."""

    turns: TurnStore
    conversations: ConversationStore
    log: EventLog
    pool: ClientPool
    memory: TurnMemory
    policy: Policy
    approvals: ApprovalDesk
    ask_changes: bool
    """Approvals are on: a person is asked about each change."""
    journal: Journal
    metrics: Metrics
    mask: Mask
    workspace: PurePath
    paths: PathView
    default_model: str | None
    charges: bool
    """Whether the model costs money: the demo model does not, whatever the agent program reckons."""
    limits: TurnLimits
    now: Now
