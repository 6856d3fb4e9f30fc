"""When a run must be ended or sent on: decisions on evidence, no I/O."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from gateway.engine.events import RunFinished
from gateway.turns.evidence import SKILL_FILE, Evidence, ToolUse


class DoomLoop:
    """Counts how often the same call was made in a row; different arguments never count.

    Consecutive calls only, in the order in which they are told; each call id counts once.
    """

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._last = b""
        self._count = 0
        self._seen: set[str] = set()

    def observe(self, tool_use_id: str, name: str, tool_input: Mapping[str, Any]) -> bool:
        """Count a call; True when it is the one that makes the loop."""
        if tool_use_id in self._seen:
            return False
        self._seen.add(tool_use_id)
        call = _fingerprint(name, tool_input)
        self._count = self._count + 1 if call == self._last else 1
        self._last = call
        return self._count >= self._threshold


def _fingerprint(name: str, tool_input: Mapping[str, Any]) -> bytes:
    text = json.dumps([name, tool_input], sort_keys=True, default=str)
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
    """Whether the run did something with tools and then ended without a word about it."""
    return _ended_well(evidence) and evidence.last_was_tool


def needs_follow_through(evidence: Evidence) -> bool:
    """Whether the run read how to do it, a SKILL.md, and stopped before doing any of it."""
    last = evidence.last_tool
    return (
        _ended_well(evidence)
        and not evidence.last_was_tool
        and last is not None
        and last.status == "ok"
        and reads_skill(last)
    )


def reads_skill(use: ToolUse) -> bool:
    """Whether a call only brought a skill's instructions before the model."""
    if use.name == "Skill":
        return True
    if use.name == "Bash":
        program, *files = str(use.input.get("command") or "").split() or [""]
        return program == "cat" and bool(files) and all(map(_is_skill_file, files))
    return use.name == "Read" and _is_skill_file(str(use.input.get("file_path") or ""))


def _is_skill_file(path: str) -> bool:
    return path.replace("\\", "/").rsplit("/", 1)[-1].strip("'\"") == SKILL_FILE
