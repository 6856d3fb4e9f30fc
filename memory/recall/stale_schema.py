"""Filters out what memory says of the schemas of tools in use, on every path into a prompt.

Items are filtered before they are scored and again before they are packed, notes before a line is quoted,
and a conversation's pending context line by line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import anyio.to_thread

from memory.items import Item
from memory.recall.query import HeldBack
from policies.content.tool_usage import ActiveTools

_QUOTE: Final = "> "
_JUDGED_CHARS: Final = 20_000
"""Characters of a text that are judged; far more than a prompt ever gets of it."""


@dataclass(frozen=True, slots=True)
class StaleSchemaFilter:
    """Decides what is stale while some tools are in use; with no tools, nothing is."""

    tools: ActiveTools | None

    @classmethod
    def of(cls, active_tools: Sequence[str]) -> "StaleSchemaFilter":
        """Return the filter for the names of the tools in use."""
        return cls(ActiveTools.of(active_tools) if active_tools else None)

    def judge(self, item: Item) -> HeldBack | None:
        """Return why an item must not be shown, or None."""
        title = f"{item.title}\n{' '.join(item.tags)}"
        # the summary runs the heading and the first sentence together, as nobody wrote them
        body = item.body[:_JUDGED_CHARS] or item.summary
        # every symptom sounds like a known issue, which has lasting use
        beside_symptom = body.partition("\n\n## ")[2] if item.kind == "case" else ""
        if self._is_stale(title, body) or self._is_stale("", beside_symptom):
            return HeldBack(id=item.id, reason="stale_tool_schema")
        return None

    def is_stale_line(self, text: str) -> bool:
        """Return whether a single line must not be shown."""
        return self._is_stale("", text)

    def is_stale_name(self, name: str) -> bool:
        """Return whether a name must not be shown."""
        return self._is_stale(name, "")

    def _is_stale(self, title: str, text: str) -> bool:
        return self.tools is not None and self.tools.is_stale(title, text)


async def split_stale(
    items: Sequence[Item], active_tools: Sequence[str]
) -> tuple[list[Item], list[HeldBack]]:
    """Return the items that may be shown, and those held back; runs in a worker thread."""
    if not active_tools or not items:
        return list(items), []
    return await anyio.to_thread.run_sync(
        split_stale_blocking, items, active_tools, abandon_on_cancel=True
    )


def split_stale_blocking(
    items: Sequence[Item], active_tools: Sequence[str]
) -> tuple[list[Item], list[HeldBack]]:
    """Do the same in this thread."""
    stale = StaleSchemaFilter.of(active_tools)
    judged = [(item, stale.judge(item)) for item in items]
    shown = [item for item, held_back in judged if held_back is None]
    return shown, [held_back for _, held_back in judged if held_back is not None]


def without_stale_lines(text: str, active_tools: Sequence[str]) -> str:
    """Return a quotation without its stale lines; empty if all quoted lines are stale."""
    stale = StaleSchemaFilter.of(active_tools)
    lines = text.split("\n")
    quoted = {line for line in lines if line.startswith(_QUOTE)}
    removed = {line for line in quoted if stale.is_stale_line(line.removeprefix(_QUOTE))}
    if removed and removed == quoted:
        return ""
    return "\n".join(line for line in lines if line not in removed)
