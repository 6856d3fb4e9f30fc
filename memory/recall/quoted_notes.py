"""Notes as they go into a prompt because the message asks about memory, and what of them does not."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory.items import Item
from memory.recall.query import HeldBack


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedItem:
    """A note's item of which some lines, or all, stand in the text."""

    item: Item
    line: str
    """The first of these lines that says something, as it stands there."""
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedNotes:
    """The notes for one message; empty: nothing goes in."""

    text: str = ""
    items: Sequence[QuotedItem] = ()
    """In the order of the text, each once."""
    held_back: Sequence[HeldBack] = ()
    """What would have gone in and may not be shown now."""
