"""Decide from evidence when a run must be stopped or continued; no I/O."""

import json
from collections import deque
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from gateway.engine.events import RunFinished
from gateway.turns.evidence import Evidence, ToolUse
from gateway.workspace import SKILL_FILE

_LONGEST_CYCLE = 3
_SKILLS = ".claude/skills/"
_OWN_PREFIX = "mcp__"
"""Begins the names of tools that are not the agent program's own."""


class DoomLoop:
    """Detects that one call, or a cycle of two or three, is made `threshold` times in a row.

    Calls are equal if they do the same; different arguments never count. The main agent and each
    sub-agent are watched by themselves: several may well begin with the same call.
    """

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._callers: dict[str, _Repeats] = {}
        self._seen: set[int] = set()

    def observe(
        self, index: int, name: str, tool_input: Mapping[str, Any], caller: str = ""
    ) -> bool:
        """Count the call of that index, once; return whether it completes a loop of its caller."""
        if index in self._seen:
            return False
        self._seen.add(index)
        repeats = self._callers.setdefault(caller, _Repeats())
        repeats.add(_fingerprint(name, tool_input))
        return repeats.is_loop(self._threshold)


class _Repeats:
    """The repetitions in the calls of one agent."""

    def __init__(self) -> None:
        self._recent: deque[bytes] = deque(maxlen=_LONGEST_CYCLE)
        self._counts = dict.fromkeys(range(1, _LONGEST_CYCLE + 1), 0)
        """For each length of a cycle: how many calls in a row equal the one that many calls
        before."""

    def add(self, call: bytes) -> None:
        """Add the next call."""
        for length in self._counts:
            is_repeat = len(self._recent) >= length and self._recent[-length] == call
            self._counts[length] = self._counts[length] + 1 if is_repeat else 0
        self._recent.append(call)

    def is_loop(self, threshold: int) -> bool:
        """Return whether the last calls are a cycle, `threshold` times in a row."""
        return any(count >= length * (threshold - 1) for length, count in self._counts.items())


def without_comments(name: str, tool_input: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a call does: the agent's own tools do the same whatever
    description and timeout.
    """
    is_comment = {"description", "timeout"} if not name.startswith(_OWN_PREFIX) else set()
    return {key: value for key, value in tool_input.items() if key not in is_comment}


def _fingerprint(name: str, tool_input: Mapping[str, Any]) -> bytes:
    text = json.dumps([name, without_comments(name, tool_input)], sort_keys=True, default=str)
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _ended_well(evidence: Evidence) -> bool:
    finish = evidence.finish
    return (
        isinstance(finish, RunFinished)
        and finish.subtype == "success"
        and not finish.is_error
        and evidence.stopped_by is None
        and not evidence.model_gave_up
        and not evidence.refused
        and not evidence.cut_off
    )


def needs_summary(evidence: Evidence) -> bool:
    """Return whether the run used tools and then ended without any text about it."""
    return _ended_well(evidence) and evidence.last_was_tool


def needs_follow_through(evidence: Evidence) -> bool:
    """Return whether the run read a SKILL.md and stopped before following it."""
    last = evidence.last_tool
    return (
        _ended_well(evidence)
        and not evidence.last_was_tool
        and last is not None
        and last.status == "ok"
        and reads_skill(last)
    )


def reads_skill(use: ToolUse) -> bool:
    """Return whether a call only showed a skill's instructions to the model."""
    if use.name == "Skill":
        return True
    if use.name == "Bash":
        program, *files = str(use.input.get("command") or "").split() or [""]
        return program == "cat" and bool(files) and all(map(_is_skill_file, files))
    return use.name == "Read" and _is_skill_file(str(use.input.get("file_path") or ""))


def skills_read(use: ToolUse) -> set[str]:
    """Return the names of the workspace's skills that such a call showed; a file that is none of
    them stands under its own path.
    """
    if use.name == "Skill":
        return {str(use.input.get("skill"))}
    given = str(use.input.get("command") or use.input.get("file_path") or "").split(" ")
    files = [word.strip("'\"") for word in (given[1:] if use.name == "Bash" else [" ".join(given)])]
    inside = [file.replace("\\", "/").removeprefix("./") for file in files]
    return {file.removeprefix(_SKILLS).removesuffix(f"/{SKILL_FILE}") for file in inside}


def _is_skill_file(path: str) -> bool:
    return path.replace("\\", "/").rsplit("/", 1)[-1].strip("'\"") == SKILL_FILE
