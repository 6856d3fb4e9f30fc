"""Turns a recognised request into tool calls, one round after another, from what the rounds before returned.

`next_calls` is asked anew at each model call with the rounds so far, so there is nothing to remember between calls. It uses only tools that are offered.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from gateway.demo.answer import ToolCall
from gateway.demo.conversation import Conversation, ToolOutcome
from gateway.demo.intents import (
    CopyFile,
    DeleteFile,
    ListFiles,
    MakeFolder,
    MoveFile,
    ReadFile,
    Recall,
    Remember,
    RunCommand,
    SearchCases,
    SearchText,
    ToolIntent,
    UseSkill,
    WriteFile,
)

NOTES_PATH = "memory/notes.md"

Round: TypeAlias = tuple[ToolOutcome, ...]

_MAX_FILES_READ = 5
_REGEX_META = re.compile(r"([\\.^$|?*+()\[\]{}])")
_NUMBERED_LINE = re.compile(r"\s*\d+(?:\t|→)(.*)")
_NOT_THERE = re.compile(r"does not exist|no such file|not found|ENOENT", re.IGNORECASE)
_UNREAD = re.compile(r"has not been read", re.IGNORECASE)
_FILE_NAME = re.compile(r"[^\s`]+\.(?:md|ya?ml|txt)\Z")


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


def next_calls(intent: ToolIntent, rounds: Sequence[Round], place: Workplace) -> Calls | Missing:
    """The calls to make after `rounds`; empty when the request is done, or cannot be."""
    match intent:
        case WriteFile(path, text):
            return _write(path, text, rounds, place)
        case Remember(fact):
            return _remember(fact, rounds, place)
        case Recall():
            return _read_memory(rounds, place)
        case UseSkill():
            return _use_skill(intent, rounds, place)
        case _:
            return () if rounds else _single_call(intent, place)


def _single_call(
    intent: ListFiles
    | ReadFile
    | MoveFile
    | CopyFile
    | DeleteFile
    | MakeFolder
    | SearchText
    | RunCommand
    | SearchCases,
    place: Workplace,
) -> Calls | Missing:
    match intent:
        case ListFiles(folder):
            return _list_files(folder, place)
        case ReadFile(path):
            return _read((path,), place)
        case MoveFile() | CopyFile() | DeleteFile() | MakeFolder():
            return _bash(_file_command(intent), place)
        case SearchText(text, folder):
            return _search(text, folder, place)
        case RunCommand(command):
            return _call("Bash", {"command": command}, place)
        case SearchCases(query):
            return _search_cases(query, place)
        case _:
            assert_never(intent)


def _file_command(intent: MoveFile | CopyFile | DeleteFile | MakeFolder) -> Sequence[str]:
    match intent:
        case MoveFile(source, target):
            return "mv", _word(source), _word(target)
        case CopyFile(source, target):
            return "cp", _word(source), _word(target)
        case DeleteFile(path, is_folder):
            return "rm", *(("-r",) if is_folder else ()), _word(path)
        case MakeFolder(path):
            return "mkdir", "-p", _word(path)


def _list_files(folder: str, place: Workplace) -> Calls | Missing:
    if "Bash" in place.tools:
        return _bash(("ls", "-la", *(() if folder == "." else (_word(folder),))), place)
    if "Glob" in place.tools:
        return _call("Glob", {"pattern": "*", "path": place.absolute(folder)}, place)
    return Missing(("Bash", "Glob"))


def _search(text: str, folder: str, place: Workplace) -> Calls | Missing:
    if "Grep" in place.tools:
        pattern = _REGEX_META.sub(r"\\\1", text)
        arguments = {
            "pattern": pattern,
            "path": place.absolute(folder),
            "output_mode": "content",
            "-n": True,
        }
        return _call("Grep", arguments, place)
    return _bash(("grep", "-rnF", "-e", shlex.quote(text), _word(folder)), place)


def _search_cases(query: str, place: Workplace) -> Calls | Missing:
    name = next((tool for tool in sorted(place.tools) if tool.endswith("memory_case_search")), None)
    if name is None:
        return Missing(("memory_case_search",))
    parameters = place.tools[name]
    known = next((key for key in ("query", "text", "q", "problem") if key in parameters), "query")
    return _call(name, {known: query}, place)


def _write(path: str, text: str, rounds: Sequence[Round], place: Workplace) -> Calls | Missing:
    writing = _call("Write", {"file_path": place.absolute(path), "content": text}, place)
    if not rounds:
        return writing
    last = rounds[-1][-1]
    # An existing file has to be read before it may be replaced.
    if len(rounds) == 1 and last.is_error and _UNREAD.search(last.text):
        return _read((path,), place)
    if len(rounds) == 2 and last.name == "Read" and not last.is_error:  # noqa: PLR2004 - refused, read, write again
        return writing
    return ()


def _remember(fact: str, rounds: Sequence[Round], place: Workplace) -> Calls | Missing:
    if not rounds:
        return _read((NOTES_PATH,), place)
    if len(rounds) > 1:
        return ()
    found = rounds[0][-1]
    path = place.absolute(NOTES_PATH)
    if found.is_error:
        if not _NOT_THERE.search(found.text):
            return ()
        return _call("Write", {"file_path": path, "content": f"# Notes\n\n- {fact}\n"}, place)
    lines = read_lines(found.text)
    anchor = next((line for line in reversed(lines) if line.strip()), "")
    if f"- {fact}" in lines:
        return ()
    if not anchor:
        return _call("Write", {"file_path": path, "content": f"# Notes\n\n- {fact}\n"}, place)
    if "\n".join(lines).count(anchor) == 1 and "Edit" in place.tools:
        change = {"file_path": path, "old_string": anchor, "new_string": f"{anchor}\n- {fact}"}
        return _call("Edit", change, place)
    whole = "\n".join(lines).rstrip("\n")
    return _call("Write", {"file_path": path, "content": f"{whole}\n- {fact}\n"}, place)


def _read_memory(rounds: Sequence[Round], place: Workplace) -> Calls | Missing:
    if not rounds:
        if "Bash" in place.tools:
            return _bash(("ls", "memory"), place)
        if "Glob" in place.tools:
            return _call("Glob", {"pattern": "memory/*"}, place)
        return _read((NOTES_PATH,), place)
    listing = rounds[0][-1]
    if len(rounds) > 1 or listing.is_error or listing.name == "Read":
        return ()
    names = [
        line.strip() for line in listing.text.splitlines() if _FILE_NAME.fullmatch(line.strip())
    ]
    paths = [name if "/" in name or "\\" in name else f"memory/{name}" for name in names]
    return _read(tuple(paths[:_MAX_FILES_READ]), place) if paths else ()


def _use_skill(intent: UseSkill, rounds: Sequence[Round], place: Workplace) -> Calls | Missing:
    if not place.skill_is_loaded:
        if not rounds:
            return _load_skill(intent, place)
        if rounds[0][-1].is_error:
            return ()
        rounds = rounds[1:]
    if intent.name == "memory-capture":
        return _remember(intent.arguments, rounds, place) if intent.arguments else ()
    if intent.name.startswith("memory-"):
        return _read_memory(rounds, place)
    return ()


def _load_skill(intent: UseSkill, place: Workplace) -> Calls | Missing:
    if "Skill" in place.tools:
        arguments = {"args": intent.arguments} if intent.arguments else {}
        return _call("Skill", {"skill": intent.name, **arguments}, place)
    return _read((f".claude/skills/{intent.name}/SKILL.md",), place)


def read_lines(result: str) -> list[str]:
    """The lines of a file from the numbered text that the Read tool returns; lines without a number are the tool's own."""
    found = (_NUMBERED_LINE.fullmatch(line) for line in result.split("\n"))
    return [match[1] for match in found if match is not None]


def _read(paths: Sequence[str], place: Workplace) -> Calls | Missing:
    if "Read" not in place.tools:
        return _bash(("cat", *map(_word, paths)), place)
    return tuple(ToolCall("Read", {"file_path": place.absolute(path)}) for path in paths)


def _bash(words: Sequence[str], place: Workplace) -> Calls | Missing:
    return _call("Bash", {"command": " ".join(words)}, place)


def _call(name: str, arguments: Mapping[str, object], place: Workplace) -> Calls | Missing:
    return (ToolCall(name, arguments),) if name in place.tools else Missing((name,))


def _word(path: str) -> str:
    """`path` as one shell word that cannot be taken for an option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)
