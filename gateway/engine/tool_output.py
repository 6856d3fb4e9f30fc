"""Shortens the results of tools for the model.

The agent program saves a result longer than its limit to a file in its own data folder and gives the model
that path, which the gate denies. So long results are cut before the agent program checks their length.
"""

from collections.abc import Mapping
from typing import Any

from claude_agent_sdk import HookContext, HookInput, HookJSONOutput

SHORTENED_TOOLS = "Bash|Grep|mcp__.*"
"""The tools whose results are cut here; Read bounds its own results."""

_MAX_CHARS = 18_000
"""Below the smallest of the agent program's limits, 20,000 for Grep."""
_WITHOUT = frozenset({"persistedOutputPath", "persistedOutputSize"})
"""The fields in which the agent program names the file with the whole output."""


async def shorten_result(  # noqa: RUF029  the SDK awaits it
    hook_input: HookInput, _tool_use_id: str | None, _context: HookContext
) -> HookJSONOutput:
    """Cut a tool's long result; a `PostToolUse` hook."""
    response = hook_input.get("tool_response")
    shortened = shorten(response)
    if shortened == response:
        return {}
    return {
        "hookSpecificOutput": {
            "hookEventName": "PostToolUse",
            "updatedToolOutput": shortened,
        }
    }


def shorten(response: Any) -> Any:
    """Return a result of the same shape with texts of about `_MAX_CHARS` in total."""
    return _Shortener().cut(response)


class _Shortener:
    def __init__(self) -> None:
        self._left = _MAX_CHARS

    def cut(self, value: Any) -> Any:
        match value:
            case str():
                return self._cut_text(value)
            case {"type": "image" | "resource_link"}:
                return value
            case Mapping():
                return {key: self.cut(part) for key, part in value.items() if key not in _WITHOUT}
            case list():
                return self._cut_list(value)
            case _:
                return value

    def _cut_text(self, text: str) -> str:
        kept, self._left = text[: self._left], self._left - min(len(text), self._left)
        if len(kept) == len(text):
            return text
        return f"{kept}\n{_more(len(text) - len(kept), 'characters')}"

    def _cut_list(self, items: list[Any]) -> list[Any]:
        """Cut a list; a list of texts, such as file names, keeps the first ones whole."""
        if not all(isinstance(item, str) for item in items):
            return [self.cut(item) for item in items]
        kept: list[Any] = []
        for item in items:
            if len(item) >= self._left:
                return [*kept, _more(len(items) - len(kept), "lines")]
            kept.append(item)
            self._left -= len(item) + 1
        return kept


def _more(count: int, what: str) -> str:
    return f"… {count} {what} left out here. Ask for less: Read with offset and limit, or Grep."
