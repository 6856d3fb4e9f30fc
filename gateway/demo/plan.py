"""Turns a recognised request into tool calls, one round after another, from what the rounds before returned.

`next_calls` is asked anew at each model call with the rounds so far, so there is nothing to remember between calls. It uses only tools that are offered.
"""

import re
import shlex
from collections.abc import Sequence
from typing import assert_never

from gateway.demo.calling import (
    Calls,
    Missing,
    Round,
    Workplace,
    call_bash,
    call_tool,
    read_files,
    shell_word,
)
from gateway.demo.editing import (
    NOTES_PATH,
    append_text,
    forget_notes,
    note_fact,
    replace_text,
    write_file,
)
from gateway.demo.intents import (
    AppendText,
    CopyFile,
    DeleteFile,
    Forget,
    ListFiles,
    MakeFolder,
    MoveFile,
    ReadFile,
    Recall,
    Remember,
    ReplaceText,
    RunCommand,
    SearchCases,
    SearchText,
    ToolIntent,
    UseSkill,
    WriteFile,
)

_MAX_FILES_READ = 5
_REGEX_META = re.compile(r"([\\.^$|?*+()\[\]{}])")
_FILE_NAME = re.compile(r"[^\s`]+\.(?:md|ya?ml|txt)\Z")


def next_calls(intent: ToolIntent, rounds: Sequence[Round], place: Workplace) -> Calls | Missing:
    """The calls to make after `rounds`; empty when the request is done, or cannot be."""
    match intent:
        case WriteFile(path, text):
            return write_file(path, text, rounds, place)
        case AppendText(path, text):
            return append_text(path, text, rounds, place)
        case ReplaceText(path, old, new):
            return replace_text(path, old, new, rounds, place)
        case Remember(fact):
            return note_fact(fact, rounds, place)
        case Forget(about):
            return forget_notes(about, rounds, place)
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
            return read_files((path,), place)
        case MoveFile() | CopyFile() | DeleteFile() | MakeFolder():
            return call_bash(_file_command(intent), place)
        case SearchText(text, folder):
            return _search(text, folder, place)
        case RunCommand(command):
            return call_tool("Bash", {"command": command}, place)
        case SearchCases(query):
            return _search_cases(query, place)
        case _:
            assert_never(intent)


def _file_command(intent: MoveFile | CopyFile | DeleteFile | MakeFolder) -> Sequence[str]:
    match intent:
        case MoveFile(source, target):
            return "mv", shell_word(source), shell_word(target)
        case CopyFile(source, target):
            return "cp", shell_word(source), shell_word(target)
        case DeleteFile(path, is_folder):
            return "rm", *(("-r",) if is_folder else ()), shell_word(path)
        case MakeFolder(path):
            return "mkdir", "-p", shell_word(path)


def _list_files(folder: str, place: Workplace) -> Calls | Missing:
    if "Bash" in place.tools:
        return call_bash(("ls", "-la", *(() if folder == "." else (shell_word(folder),))), place)
    if "Glob" in place.tools:
        return call_tool("Glob", {"pattern": "*", "path": place.absolute(folder)}, place)
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
        return call_tool("Grep", arguments, place)
    return call_bash(("grep", "-rnF", "-e", shlex.quote(text), shell_word(folder)), place)


def _search_cases(query: str, place: Workplace) -> Calls | Missing:
    name = next((tool for tool in sorted(place.tools) if tool.endswith("memory_case_search")), None)
    if name is None:
        return Missing(("memory_case_search",))
    parameters = place.tools[name]
    known = next((key for key in ("query", "text", "q", "problem") if key in parameters), "query")
    return call_tool(name, {known: query}, place)


def _read_memory(rounds: Sequence[Round], place: Workplace) -> Calls | Missing:
    if not rounds:
        if "Glob" in place.tools:
            return call_tool("Glob", {"pattern": "memory/*"}, place)
        if "Bash" in place.tools:
            return call_bash(("ls", "memory"), place)
        return read_files((NOTES_PATH,), place)
    listing = rounds[0][-1]
    if len(rounds) > 1 or listing.is_error or listing.name == "Read":
        return ()
    names = [
        line.strip() for line in listing.text.splitlines() if _FILE_NAME.fullmatch(line.strip())
    ]
    paths = [name if "/" in name or "\\" in name else f"memory/{name}" for name in names]
    return read_files(tuple(paths[:_MAX_FILES_READ]), place) if paths else ()


def _use_skill(intent: UseSkill, rounds: Sequence[Round], place: Workplace) -> Calls | Missing:
    if not place.skill_is_loaded:
        if not rounds:
            return _load_skill(intent, place)
        if rounds[0][-1].is_error:
            return ()
        rounds = rounds[1:]
    if intent.name == "memory-capture":
        return note_fact(intent.arguments, rounds, place) if intent.arguments else ()
    if intent.name.startswith("memory-"):
        return _read_memory(rounds, place)
    return ()


def _load_skill(intent: UseSkill, place: Workplace) -> Calls | Missing:
    if "Skill" in place.tools:
        arguments = {"args": intent.arguments} if intent.arguments else {}
        return call_tool("Skill", {"skill": intent.name, **arguments}, place)
    return read_files((f".claude/skills/{intent.name}/SKILL.md",), place)
