"""What a turn told, before it is kept, and what became of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Literal

from memory.facts.fact import Fact, Origin
from memory.intents.chronicle import Guard, unguarded
from memory.items.item import ItemKind
from memory.items.scope import Scope

Learn = Literal["off", "explicit", "model"]
"""Nothing becomes a fact; what the agent keeps with its tools; or also what a small model finds
afterwards.
"""


Verbatim = Literal["whole", "without_secrets", "in_part"]
"""How much of a message is kept; `in_part`: without what is never kept, perhaps without secrets."""


Earlier = Sequence[str | Sequence[Sequence[str]]]
"""Statements that a fact had superseded, oldest first, each superseded by the next one and the last
by the fact. Those that were superseded together are one entry: a list with such a sequence of texts
for each.
"""


def texts_of(earlier: Earlier) -> list[str]:
    """Return all statements."""
    return [
        text
        for entry in earlier
        for text in ([entry] if isinstance(entry, str) else chain.from_iterable(entry))
    ]


def with_texts(earlier: Earlier, texts: Mapping[str, str]) -> Earlier:
    """Return the statements with other words; those that `texts` does not have are left out."""
    kept: list[str | Sequence[Sequence[str]]] = []
    for entry in earlier:
        if not isinstance(entry, str):
            told = [[texts[text] for text in before if text in texts] for before in entry]
            if any(told):
                kept.append([before for before in told if before])
        elif entry in texts:
            kept.append(texts[entry])
    return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTurn:
    """A turn, as the source of facts."""

    message: str
    scope: Scope
    conversation_id: str | None
    turn_id: str
    occurred_at: datetime
    guard: Guard = unguarded
    """Of what is written for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFact:
    """A statement to keep."""

    text: str
    origin: Origin
    lasting: bool = False
    evidence: str | None = None
    """The person's own words that it rests on."""
    replaces: Sequence[str] = ()
    """The ids of facts in whose place it comes."""
    earlier: Earlier = ()
    """Statements to keep as superseded by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What was forgotten, with what it takes to keep it again."""

    id: str
    kind: ItemKind
    title: str
    text: str | None = None
    """A fact's words; None for a turn or an episode."""
    project_id: str | None = None
    lasting: bool = False
    earlier: Earlier = ()
    """The facts that it had superseded, directly or not. They are forgotten, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a turn changed in memory."""

    saved: Sequence[Fact] = ()
    """Those that hold at its end."""
    forgotten: Sequence[Forgotten] = ()
    """Without the turns in which the facts were told, which are removed from the record."""
    kept_verbatim: Verbatim | None = None
    """The message asked to remember, no tool was called, and so much of the message was kept."""
    nothing_forgotten: bool = False
    """The message asked to forget, and nothing was forgotten."""
