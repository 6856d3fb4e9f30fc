"""What a turn told, before it is kept, and what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memory.facts.fact import Fact, Origin
from memory.items import Item
from memory.scope import Scope

Learn = Literal["off", "explicit", "model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTurn:
    """A turn's message, as the source of facts."""

    message: str
    scope: Scope
    conversation_id: str | None
    turn_id: str
    occurred_at: datetime
    notes: Sequence[str] = ()
    """What the agent wrote into notes in the turn: it is not kept a second time."""


@dataclass(frozen=True, slots=True)
class NewFact:
    """A statement to keep."""

    text: str
    origin: Origin
    lasting: bool = False
    evidence: str | None = None
    is_firm: bool = True
    stands_alone: bool = True
    """False if it counts only where it corrects a fact or a note."""
    note_line: str | None = None
    """The line of a note that it corrects unless it corrects a fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a message changed in memory."""

    saved: Sequence[Fact] = ()
    forgotten: Sequence[Item] = ()
    """As it was; without what went with it, such as the turn in which a fact was told."""
