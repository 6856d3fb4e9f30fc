"""Describes a tool call in a line: its main argument, its file, whether it checked something.

Names, arguments and errors of MCP tools are left out, because their live definitions are right and
an old call would mislead.
"""

import re
from typing import Any, Final

from memory.episodes.clipping.clip import clip_text
from memory.episodes.turn import ToolCall
from memory.text.lines import one_line

MAX_ASKED_CHARS: Final = 200
MAX_ERROR_CHARS: Final = 400
MAX_OUTPUT_CHARS: Final = 700

CHANGING: Final = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
_AGAIN: Final = CHANGING | {"Read", "Glob", "LS", "NotebookRead"}
"""Tools whose result can be read again at any time, and is left out."""

_LOOKING: Final = (_AGAIN - CHANGING) | {"Grep", "Skill", "WebSearch"}
_SHOWING: Final = frozenset(
    {"cat", "cd", "echo", "find", "grep", "head", "ls", "pwd", "rg", "tail", "wc"}
)
_COMMANDS: Final = re.compile(r"[|;&]+")
_KEEPING_BOOKS: Final = frozenset({"TodoWrite", "TodoRead", "ToolSearch", "ExitPlanMode"})
_ASKED_BY: Final = (
    *("command", "file_path", "notebook_path", "path", "pattern"),
    *("url", "query", "description", "skill"),
)
_OF_SERVER: Final = re.compile(r"^mcp__(?P<server>[^_]+(?:_[^_]+)*)__|^(?P<other>[\w\-]+)::")
_CHECKING: Final = re.compile(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|playwright|phpunit|rspec|ctest|gtest"
    r"|ruff|mypy|pyright|flake8|eslint|tsc|shellcheck|golangci-lint|clippy)\b"
    r"|\b(?:npm|pnpm|yarn|bun|go|cargo|mvn|gradle|gradlew|dotnet|make|swift"
    r"|mix)\b[^|;&]{0,60}\b(?:test|tests|check|verify|lint|build|vet|typecheck)\b"
    r"|\bcurl\b.{0,200}\b(?:health|healthz|readyz|status|ping)\b|\bgit diff --check\b",
    re.IGNORECASE,
)
_FORM_ERROR: Final = re.compile(
    "inputvalidationerror|validation error|invalid (?:input|argument|parameter)"
    "|missing required"
    "|required (?:property|parameter|field|argument)|unexpected (?:keyword|property"
    "|argument|parameter)"
    "|does not match (?:the )?schema|参数(?:错误|缺失|不合法|校验)|缺少(?:必填)?参数",
    re.IGNORECASE,
)


def tells(call: ToolCall) -> bool:
    """Return whether a call is recorded; calls of to-do lists and of memory are not."""
    return call.name not in _KEEPING_BOOKS and "memory" not in call.name.lower()


def only_looks(call: ToolCall) -> bool:
    """Return whether a call only shows files: it reads, lists or searches."""
    if call.name in _LOOKING:
        return True
    command = call.input.get("command")
    if call.name != "Bash" or not isinstance(command, str):
        return False
    parts = [part.split() for part in _COMMANDS.split(command[:_LOOKED_AT])]
    return ">" not in command and all(part and part[0] in _SHOWING for part in parts)


def server_of(call: ToolCall) -> str | None:
    """Return the MCP server of a tool; None for the agent's own tools."""
    match = _OF_SERVER.match(call.name)
    return (match["server"] or match["other"]) if match else None


def asked(call: ToolCall) -> str:
    """Return a call's main argument in one line; empty for an MCP tool."""
    if server_of(call) is not None:
        return ""
    value = next((call.input[key] for key in _ASKED_BY if _is_text(call.input.get(key))), "")
    return one_line(str(value), MAX_ASKED_CHARS)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def named(call: ToolCall) -> str:
    """Return the tool's name and its main argument."""
    server = server_of(call)
    if server is not None:
        return f"a tool of {server}"
    what = asked(call)
    return f"{call.name} `{what}`" if what else call.name


def outcome(call: ToolCall) -> str:
    """Return a successful call's output, clipped; empty if it can be read again."""
    if call.status != "ok" or call.name in _AGAIN:
        return ""
    return clip_text(call.output, MAX_OUTPUT_CHARS).strip()


def reason(call: ToolCall) -> str:
    """Return why a call did not succeed, clipped, without the schema of the tool."""
    if _FORM_ERROR.search(call.output[:_LOOKED_AT]):
        return "the call was not of the form that the tool takes; its live definition has it"
    if server_of(call) is not None:
        last = [line for line in call.output.splitlines() if line.strip()]
        return one_line(last[-1], MAX_OUTPUT_CHARS // 4) if last else ""
    return clip_text(call.output, MAX_ERROR_CHARS).strip()


_LOOKED_AT = 2000


def checks(call: ToolCall) -> bool:
    """Return whether a call ran tests, a linter, a build or a health check."""
    command = call.input.get("command")
    return isinstance(command, str) and bool(_CHECKING.search(command[:_LOOKED_AT]))


def file_of(call: ToolCall) -> str | None:
    """Return the file that a call read or changed."""
    value = call.input.get("file_path") or call.input.get("notebook_path")
    return one_line(value, MAX_ASKED_CHARS) if isinstance(value, str) and value.strip() else None
