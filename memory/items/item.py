"""The unit of search: a note, a fact, an episode, a case or a turn as one item.

The item has what is searched, ranked and shown; its source (sections, fields) has tables of its
own.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from memory.items.scope import Scope

ItemKind = Literal["note", "fact", "episode", "case", "turn"]
KINDS: tuple[ItemKind, ...] = ("note", "fact", "episode", "case", "turn")


REPLY: Final = "→ "
"""In the body of a turn, at the beginning of a line: the reply follows."""
BETWEEN_HEADINGS: Final = " › "
"""Stands in a title between the headings above an item and its own."""


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
    valid_until: datetime | None = None
    """When it stopped to hold, because another item came in its place; None while it holds."""
