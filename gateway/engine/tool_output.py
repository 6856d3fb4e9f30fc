"""What a tool returned, as the model and people may read it.

The agent program saves a result that is longer than its limit to a file of its own data folder, and tells
the model that path, which the gate denies. So long results are cut before it looks at their length.
"""

import re
from collections.abc import Mapping
from typing import Any

from claude_agent_sdk import HookContext, HookInput, HookJSONOutput

SHORTENED_TOOLS = "Bash|Grep|mcp__.*"
"""The tools whose results are cut here; Read bounds its own, and says how to read on."""

_MAX_CHARS = 18_000
"""Below the least of the agent program's limits, Grep's 20,000."""
_WITHOUT = frozenset({"persistedOutputPath", "persistedOutputSize"})
"""Where the agent program names the file that holds the whole output."""

_TAGS = re.compile(r"</?(?:tool_use_error|persisted-output|truncated-output)>\n?")
_HOOK_ERROR = re.compile(r"\A(?:PreToolUse|PostToolUse)(?::\S+)? hook error: (?:\[callback\]: )?")
_SAVED_TO = re.compile(r" (?:Full output|The whole result is) saved (?:to: |at )[^\n]*")


def plain_result(text: str) -> str:
    """Return the text of a result without what the agent program wraps around it."""
    return _SAVED_TO.sub("", _HOOK_ERROR.sub("", _TAGS.sub("", text)))


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
    """Return a result of the same shape whose texts together are at most `_MAX_CHARS` long and a bit."""
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
        """Cut a list; of texts, such as names of files, the first ones are kept whole."""
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
