"""The unit of search: a note, an episode or a case as one item.

The item has what is searched, ranked and shown; its source (sections, fields) has tables of its own.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memory.scope import Scope

ItemKind = Literal["note", "episode", "case"]
KINDS: tuple[ItemKind, ...] = ("note", "episode", "case")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A searchable item with secrets masked."""

    id: str
    kind: ItemKind
    scope: Scope
    title: str
    """One line."""
    summary: str
    """One line of at most 300 characters for lists and prompts."""
    body: str
    """The whole text."""
    source: str
    """Its origin for a reader: `memory/ops.md`, `turn trn_… of cnv_…`."""
    occurred_at: datetime
    updated_at: datetime
    tags: tuple[str, ...] = ()
    conversation_id: str | None = None
    turn_id: str | None = None
    thread: str | None = None
    """The dialogue or the like that it is part of; its neighbours there are searched with it."""
    position: int | None = None
    """Its place in the thread; None if `thread` is None."""
    revision: int = 1
    """Grows with each change."""
