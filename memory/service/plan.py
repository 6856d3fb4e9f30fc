"""The configuration of memory, and the callbacks for what happens in it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from memory.background import Duties, NoOthers, OnFailure
from memory.clock import Now
from memory.embeddings.choice import EmbedderChoice
from memory.episodes.episode import Written
from memory.facts.fact import Origin
from memory.facts.learner import LearningResult
from memory.facts.told import Learn
from memory.intents.builders import (
    BreakerChange,
    Happening,
    intent_from_breaker,
    intent_from_delivery,
)
from memory.intents.masking import Mask
from memory.intents.queue import IntentQueue
from memory.items.scope import WORKSPACE_OWNER
from memory.notes.notebooks import UserNotes
from memory.outbox.backend import Backend
from memory.outbox.delivery import Delivery
from memory.outbox.loop import DeliveryResult
from memory.recall.retrievers import SearchEvents
from memory.remote.breaker import BreakerState
from memory.remote.small_model import AskModel
from memory.stores.database import SqlDatabase

_CHANGES: Final[Mapping[BreakerState, BreakerChange]] = {
    "open": "opened",
    "half_open": "half_opened",
    "closed": "closed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """The configuration of memory."""

    data_dir: Path
    open_database: Callable[[], Awaitable[SqlDatabase]] | None = None
    """Opens the database, with its tables; None: it is a file of `data_dir`."""
    workspace: Path
    user_notes: UserNotes | None = None
    """Where the notes of each user are; None: those of `workspace` are everybody's."""
    mask: Mask
    known_secrets: Sequence[str] = ()
    embedder: EmbedderChoice = field(default_factory=EmbedderChoice)
    policy_file: Path | None = None
    backends: Sequence[Backend] = ()
    """Backends besides the vector index; those that can be searched are."""
    ask_model: AskModel | None = None
    learns: Learn = "explicit"
    """What becomes facts: nothing, what agents keep with their tools, or also what a small model
    finds.
    """
    keeps_contacts: bool = False
    """True to leave e-mail addresses, phone numbers and account names in episodes."""
    extract: bool = False
    """True to have a model add decisions and pitfalls to episodes."""
    serves_vectors: bool = True
    """True if this process serves the vector index, where there is an embedder; only one process
    may."""
    served_elsewhere: Sequence[str] = ()
    """Backends that another process serves."""
    tends: bool = True
    """True to look for ended turns and notes; a command leaves that to the server."""
    duties: Duties = field(default_factory=NoOthers)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEvents:
    """Callbacks for what happens in memory; called on the loop."""

    on_delivery: Callable[[Delivery, DeliveryResult, str | None], None] = lambda *_: None
    on_breaker: Callable[[str, BreakerState], None] = lambda *_: None
    on_episode: Callable[[Written], None] = lambda _: None
    on_fact: Callable[[Origin], None] = lambda _: None
    on_learning: Callable[[LearningResult], None] = lambda _: None
    on_loop_failure: OnFailure = lambda _: None
    searches: SearchEvents = field(default_factory=SearchEvents)


def recorded_in(queue: IntentQueue, events: MemoryEvents, now: Now) -> MemoryEvents:
    """Return the same events, with deliveries and changes of breakers also recorded in the
    chronicle.
    """

    def on_delivery(delivery: Delivery, result: DeliveryResult, error: str | None) -> None:
        queue.put(
            intent_from_delivery(
                Happening(owner_id=delivery.owner_id, occurred_at=now()),
                outcome=result,
                backend=delivery.backend,
                operation=delivery.operation,
                item_id=delivery.item_id,
                attempts=delivery.attempts + 1,
                error=error,
            )
        )
        events.on_delivery(delivery, result, error)

    def on_breaker(backend: str, state: BreakerState) -> None:
        happening = Happening(owner_id=WORKSPACE_OWNER, occurred_at=now())
        queue.put(intent_from_breaker(happening, change=_CHANGES[state], backend=backend))
        events.on_breaker(backend, state)

    return replace(events, on_delivery=on_delivery, on_breaker=on_breaker)
