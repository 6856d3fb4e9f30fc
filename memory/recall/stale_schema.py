"""Filters out what memory says of the schemas of tools in use, on every path into a prompt.

Items are filtered before they are scored and again before they are packed, notes before a line is
quoted. The gateway's own records of a conversation are no memory, and are not filtered.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Final, Protocol

import anyio.to_thread

from memory.items.item import Item
from memory.recall.query import HeldBack
from policies.content.tool_usage import ActiveTools

_MOST_TOOL_SETS: Final = 32
_JUDGED_CHARS: Final = 20_000
"""Characters of a text that are judged; far more than a prompt ever gets of it."""
_MOST_JUDGED: Final = 2_000
"""Texts whose judgement is remembered for one set of tools."""


class Judge(Protocol):
    """Judges texts for the tools in use; see `ActiveTools`."""

    def is_stale(self, title: str, text: str) -> bool:
        """Return whether a text describes a call of a tool and nothing of lasting use."""


class _RememberingJudge:
    """Judges each text once; a conversation finds much the same in each of its turns."""

    def __init__(self, tools: ActiveTools) -> None:
        self._tools = tools
        self._judged: dict[bytes, bool] = {}

    def is_stale(self, title: str, text: str) -> bool:
        key = blake2b(f"{title}\0{text}".encode("utf-8", "surrogatepass")).digest()
        known = self._judged.get(key)
        if known is None:
            if len(self._judged) >= _MOST_JUDGED:
                self._judged.clear()
            known = self._judged[key] = self._tools.is_stale(title, text)
        return known


def hold_back(item: Item, tools: Judge) -> HeldBack | None:
    """Return why an item must not be shown while tools are in use, or None."""
    title = f"{item.title}\n{' '.join(item.tags)}"
    # the summary runs the heading and the first sentence together, as nobody wrote them
    body = item.body[:_JUDGED_CHARS] or item.summary
    # every symptom sounds like a known issue, which has lasting use
    beside_symptom = body.partition("\n\n## ")[2] if item.kind == "case" else ""
    if tools.is_stale(title, body) or (beside_symptom and tools.is_stale("", beside_symptom)):
        return HeldBack(id=item.id, reason="stale_tool_schema")
    return None


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
    tools = _tools_of(tuple(active_tools))
    judged = [(item, hold_back(item, tools)) for item in items]
    shown = [item for item, held_back in judged if held_back is None]
    return shown, [held_back for _, held_back in judged if held_back is not None]


@lru_cache(_MOST_TOOL_SETS)
def _tools_of(active_tools: tuple[str, ...]) -> Judge:
    """Return the tools ready to be found; most conversations use the same ones."""
    return _RememberingJudge(ActiveTools.of(active_tools))
