"""What calls are made of: the tools at hand, paths, and the few calls that several requests share."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gateway.demo.answer import ToolCall
from gateway.demo.conversation import Conversation, ToolOutcome

Round: TypeAlias = tuple[ToolOutcome, ...]

_NUMBERED_LINE = re.compile(r"\s*\d+(?:\t|→)(.*)")


@dataclass(frozen=True, slots=True)
class Missing:
    """The request needs one of these tools and none is offered."""

    tools: tuple[str, ...]


Calls: TypeAlias = tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Where the calls will run, and with what."""

    tools: Mapping[str, frozenset[str]]
    cwd: str | None
    skill_is_loaded: bool = False

    @classmethod
    def of(cls, conversation: Conversation) -> "Workplace":
        """The workplace that `conversation` describes."""
        return cls(
            tools=conversation.tools,
            cwd=conversation.cwd,
            skill_is_loaded=conversation.last.is_expanded_skill,
        )

    def absolute(self, path: str) -> str:
        """`path` below the working directory, where that is known; absolute paths stay as they are."""
        if self.cwd is None or path.startswith(("/", "~", "\\")) or re.match(r"[A-Za-z]:", path):
            return path
        if path in {"", "."}:
            return self.cwd
        separator = "\\" if "\\" in self.cwd else "/"
        return self.cwd.rstrip("/\\") + separator + path.removeprefix("./")


def read_lines(result: str) -> list[str]:
    """The lines of a file from the numbered text that the Read tool returns; lines without a number are the tool's own."""
    found = (_NUMBERED_LINE.fullmatch(line) for line in result.split("\n"))
    return [match[1] for match in found if match is not None]


def read_files(paths: Sequence[str], place: Workplace) -> Calls | Missing:
    """Read these files at once, with whatever tool can."""
    if "Read" not in place.tools:
        return call_bash(("cat", *map(shell_word, paths)), place)
    return tuple(ToolCall("Read", {"file_path": place.absolute(path)}) for path in paths)


def call_bash(words: Sequence[str], place: Workplace) -> Calls | Missing:
    """Run these words, quoted already, as a command."""
    return call_tool("Bash", {"command": " ".join(words)}, place)


def call_tool(name: str, arguments: Mapping[str, object], place: Workplace) -> Calls | Missing:
    """One call, where the tool is offered."""
    return (ToolCall(name, arguments),) if name in place.tools else Missing((name,))


def shell_word(path: str) -> str:
    """`path` as one shell word that cannot be taken for an option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)
