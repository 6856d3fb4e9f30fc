"""An item as memU is given it: bounded text, and never a word of another item."""

from typing import Final

from memory.items import Item

_MAX_CHARS: Final = 20_000
_MAX_LINES: Final = 200
"""memU embeds each line by itself."""


def content_of(item: Item) -> str:
    """Give what memU keeps of an item; the first lines of a long one stand for it."""
    return "\n".join(item.body[:_MAX_CHARS].splitlines()[:_MAX_LINES])


def description_of(item: Item) -> str:
    """Say in one line what an item is about."""
    return " ".join(f"{item.title}: {item.summary}".split())
