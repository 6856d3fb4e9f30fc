"""The filter of recall: what memory says of the tools in use is held back, wherever it comes from.

Items are parted before anything is scored and once more before they are packed; what comes as text, the
notes and a conversation's pending context, loses the pieces that would be held back as items.
"""

from collections.abc import Sequence
from typing import Final

import anyio.to_thread

from memory.items import Item
from memory.recall.query import HeldBack
from policies.recall import ActiveTools

_QUOTE: Final = "> "
_JUDGED_CHARS: Final = 20_000
"""Of a text; far more than a prompt ever gets of it."""


async def hold_back(
    items: Sequence[Item], active_tools: Sequence[str]
) -> tuple[list[Item], list[HeldBack]]:
    """Part items into those that may be shown and those that tell old things of tools in use.

    Judged in a worker thread: many long texts take longer than the loop may stand still.
    """
    if not active_tools or not items:
        return list(items), []
    return await anyio.to_thread.run_sync(
        hold_back_blocking, items, active_tools, abandon_on_cancel=True
    )


def hold_back_blocking(
    items: Sequence[Item], active_tools: Sequence[str]
) -> tuple[list[Item], list[HeldBack]]:
    """Do the same in this thread."""
    tools = ActiveTools.of(active_tools)
    shown: list[Item] = []
    held: list[HeldBack] = []
    for one in items:
        if tools.holds_back(f"{one.title}\n{' '.join(one.tags)}", _text_of(one)):
            held.append(HeldBack(id=one.id, reason="stale_tool_schema"))
        else:
            shown.append(one)
    return shown, held


def without_held_back_lines(text: str, active_tools: Sequence[str]) -> str:
    """Give a quotation without the lines that must not be shown; empty where none is left."""
    tools = ActiveTools.of(active_tools)
    lines = text.split("\n")
    quoted = [one for one in lines if one.startswith(_QUOTE)]
    held = {one for one in quoted if tools.holds_back("", one.removeprefix(_QUOTE))}
    if not held:
        return text
    if len(held) == len(set(quoted)):
        return ""
    return "\n".join(one for one in lines if one not in held)


def without_held_back_blocks(text: str, active_tools: Sequence[str]) -> str:
    """Give a text without the quoted blocks that must not be shown.

    A block is a line that names what is quoted and the lines of the quotation, an empty line before it;
    in a quotation no line is empty, so nothing in it can pass for the beginning of another.
    """
    tools = ActiveTools.of(active_tools)
    return "\n\n".join(one for one in text.split("\n\n") if not _is_held_back(one, tools))


def _is_held_back(block: str, tools: ActiveTools) -> bool:
    name, *quoted = block.split("\n")
    if not quoted or not all(one.startswith(_QUOTE) for one in quoted):
        return False
    return tools.holds_back(name, "\n".join(one.removeprefix(_QUOTE) for one in quoted))


def _text_of(item: Item) -> str:
    return f"{item.summary}\n{item.body[:_JUDGED_CHARS]}"
