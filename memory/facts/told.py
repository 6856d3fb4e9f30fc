"""What a turn told, before it is kept, and what became of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from memory.facts.fact import Fact, Origin
from memory.items import ItemKind
from memory.scope import Scope

Learn = Literal["off", "explicit", "model"]

Unmet = Literal["forget_unclear", "forget_found_nothing", "still_remembered"]
"""Several facts fit a request to forget equally well; nothing fits it; other items still say what was forgotten."""


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
    """The line of a note, or of an earlier turn, that it corrects unless it corrects a fact."""
    earlier: Sequence[str] = ()
    """Statements to keep as superseded by it, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What a request to forget removed, with what it takes to keep it again."""

    id: str
    kind: ItemKind
    title: str
    text: str | None = None
    """A fact's words; None for a turn or an episode."""
    project_id: str | None = None
    lasting: bool = False
    earlier: Sequence[str] = ()
    """The facts that it had superseded, directly or not, oldest first. They are forgotten, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a message changed in memory."""

    saved: Sequence[Fact] = ()
    forgotten: Sequence[Forgotten] = ()
    """Without the turns in which the facts were told, which are removed from the record."""
    unmet: Mapping[Unmet, Sequence[str]] = field(default_factory=dict)
    """What requests to forget did not do: titles, texts of requests, or places with what they say."""
