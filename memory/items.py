"""The unit of search: a note, an episode or a case, as one searchable item.

What an item is made of (an episode's sections, a case's fields) stands in tables of its own; the item
carries what is searched, ranked and shown.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memory.scope import Scope

ItemKind = Literal["note", "episode", "case"]
KINDS: tuple[ItemKind, ...] = ("note", "episode", "case")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that is remembered, as search sees it; secrets are masked already."""

    id: str
    kind: ItemKind
    scope: Scope
    title: str
    """One line."""
    summary: str
    """One line, at most 300 characters: what a list and a prompt show."""
    body: str
    """The whole text, as a person reads it."""
    source: str
    """Where it comes from, in words a person can follow: `memory/ops.md`, `turn trn_… of cnv_…`."""
    occurred_at: datetime
    updated_at: datetime
    tags: tuple[str, ...] = ()
    conversation_id: str | None = None
    turn_id: str | None = None
    thread: str | None = None
    """What it is a part of, a dialogue say: its neighbours there are searched with it."""
    position: int | None = None
    """Its place in the thread; None exactly where `thread` is."""
    revision: int = 1
    """Grows with each change; with the id it names one state of the item."""
