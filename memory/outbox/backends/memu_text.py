"""The text of an item as memU is given it."""

from typing import Final

from memory.items.item import Item

_MAX_CHARS: Final = 20_000
_MAX_LINES: Final = 200
"""memU embeds each line by itself."""


def content_of(item: Item) -> str:
    """Return the item's text; of a long one, its first lines."""
    return "\n".join(item.body[:_MAX_CHARS].splitlines()[:_MAX_LINES])


def description_of(item: Item) -> str:
    """Return title and summary as one line."""
    return " ".join(f"{item.title}: {item.summary}".split())
