"""The filter of recall: what memory says of the tools in use is held back, wherever it comes from.

Items are parted before anything is scored and once more before they are packed, and a note's items before
a line of it is quoted; a conversation's pending context loses the lines that would be held back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import anyio.to_thread

from memory.items import Item
from memory.recall.query import HeldBack
from policies.recall import ActiveTools

_QUOTE: Final = "> "
_JUDGED_CHARS: Final = 20_000
"""Of a text; far more than a prompt ever gets of it."""


@dataclass(frozen=True, slots=True)
class StaleSchemaFilter:
    """What is held back while some tools are in use; with none in use, nothing."""

    tools: ActiveTools | None

    @classmethod
    def of(cls, active_tools: Sequence[str]) -> "StaleSchemaFilter":
        """Take the names of the tools in use."""
        return cls(ActiveTools.of(active_tools) if active_tools else None)

    def judge(self, item: Item) -> HeldBack | None:
        """Say why an item must not be shown; None: it may be."""
        if self.tools is None:
            return None
        title = f"{item.title}\n{' '.join(item.tags)}"
        if not self.tools.holds_back(title, f"{item.summary}\n{item.body[:_JUDGED_CHARS]}"):
            return None
        return HeldBack(id=item.id, reason="stale_tool_schema")

    def is_stale_line(self, text: str) -> bool:
        """Whether a line must not be shown by itself."""
        return self.tools is not None and self.tools.holds_back("", text)

    def is_stale_name(self, name: str) -> bool:
        """Whether what something is called must not be shown."""
        return self.tools is not None and self.tools.holds_back(name, "")


async def split_stale(
    items: Sequence[Item], active_tools: Sequence[str]
) -> tuple[list[Item], list[HeldBack]]:
    """Part items into those that may be shown and those that tell old things of tools in use.

    Judged in a worker thread: many long texts take longer than the loop may stand still.
    """
    if not active_tools or not items:
        return list(items), []
    return await anyio.to_thread.run_sync(
        split_stale_blocking, items, active_tools, abandon_on_cancel=True
    )


def split_stale_blocking(
    items: Sequence[Item], active_tools: Sequence[str]
) -> tuple[list[Item], list[HeldBack]]:
    """Do the same in this thread."""
    holding = StaleSchemaFilter.of(active_tools)
    shown: list[Item] = []
    held: list[HeldBack] = []
    for item in items:
        held_back = holding.judge(item)
        if held_back is None:
            shown.append(item)
        else:
            held.append(held_back)
    return shown, held


def without_stale_lines(text: str, active_tools: Sequence[str]) -> str:
    """Give a quotation without the lines that must not be shown; empty where none is left."""
    holding = StaleSchemaFilter.of(active_tools)
    lines = text.split("\n")
    quoted = [line for line in lines if line.startswith(_QUOTE)]
    held = {line for line in quoted if holding.is_stale_line(line.removeprefix(_QUOTE))}
    if not held:
        return text
    if len(held) == len(set(quoted)):
        return ""
    return "\n".join(line for line in lines if line not in held)
