"""How what tools were asked and said is told to people and stored: the one way out for such texts.

No path of the server, no secret, nothing that UTF-8 cannot carry, and nothing
endless passes here.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import anyio.to_thread

from gateway.jsonsafe import clean_text, json_safe, json_text
from gateway.observability.masking import clip, mask_leaves
from gateway.observability.paths import PathView

SUMMARY_CHARS = 160
OUTPUT_CHARS = 8_000

_READ_CHARS = 32_000
"""The part of a long text that is searched for secrets; the rest is left out before."""
_SUMMARY_READ_CHARS = 1_200
"""Masked for a summary: more than is shown, so that a secret at the cut is seen whole."""
_INLINE_CHARS = 1_000
"""A longer text is masked in a worker thread, because hostile text takes milliseconds."""

_KEYS = (
    "command",
    "file_path",
    "notebook_path",
    "pattern",
    "path",
    "skill",
    "url",
    "query",
    "description",
    "prompt",
)

Mask = Callable[[str], str]
_T = TypeVar("_T")


class OutputSanitizer:
    """Makes texts fit to be shown. Made once for a server."""

    def __init__(self, paths: PathView, mask: Mask) -> None:
        self.mask = mask
        self.paths = paths

    def text(self, text: str) -> str:
        """Mask secrets and tell paths as they are seen from the workspace."""
        return self.mask(self.paths.shown(clean_text(text)))

    def clipped(self, text: str, limit: int = OUTPUT_CHARS) -> str:
        """Give a long text's head and tail; a secret at the cut is masked before it is cut."""
        return clip(self.text(clip(text, _READ_CHARS)), limit)

    def summary(self, tool_input: Mapping[str, Any]) -> str:
        """Say in one line what a call is about: its command, file or pattern."""
        for key in _KEYS:
            value = tool_input.get(key)
            if isinstance(value, str) and value.strip():
                return self._line(value)
        return self._line(json_text(tool_input)) if tool_input else ""

    def input(self, tool_input: Mapping[str, Any]) -> dict[str, Any]:
        """Return a tool's input with every string clipped and masked, and the values of secret keys."""
        masked: dict[str, Any] = mask_leaves(json_safe(tool_input), self.clipped)
        return masked

    def _line(self, text: str) -> str:
        head = " ".join(clip(text, _READ_CHARS).split())[:_SUMMARY_READ_CHARS]
        line = " ".join(self.text(head).split())
        return line if len(line) <= SUMMARY_CHARS else f"{line[: SUMMARY_CHARS - 1]}…"


async def off_loop(work: Callable[[Any], _T], value: Any, *, more_chars: int = 0) -> _T:
    """Apply `work` to a text or a mapping of texts, in a worker thread unless the value is short.

    `more_chars` is what `work` reads beside the value.
    """
    if more_chars + count_chars(value, _INLINE_CHARS) <= _INLINE_CHARS:
        return work(value)
    return await anyio.to_thread.run_sync(work, value)


def count_chars(value: Any, enough: int) -> int:
    """Count the characters in a JSON value, and one for each item; stop when there are `enough`."""
    count, waiting = 0, [value]
    while waiting and count <= enough:
        item = waiting.pop()
        count += len(item) if isinstance(item, str) else 1
        if isinstance(item, Mapping):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple):
            waiting += item
    return count
