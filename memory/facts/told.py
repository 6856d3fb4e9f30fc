"""What a turn told, before it is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memory.facts.fact import Origin
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
    """False if it counts only where it corrects a fact."""
