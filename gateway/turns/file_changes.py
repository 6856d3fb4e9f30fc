"""The files that one turn changed: noted at the gate before each call, compared when
the turn ends.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import anyio

from gateway.files.line_diff import diff_lines
from gateway.files.snapshot import ChangedFile, ChangeRecorder, FileChanges
from gateway.turns.sanitizer import OutputSanitizer
from policies.verdict import Allow

_log = logging.getLogger(__name__)

MAX_DIFF_CHARS: Final = 60_000
"""Of one file; the rest is left out."""
MAX_TURN_CHARS: Final = 300_000
"""Of all diffs of a turn; further files have none."""
MAX_MASKED_CHARS: Final = 400_000
"""Of all texts that are compared in a turn: to mask a character takes some microseconds."""
_NOTE_S: Final = 5.0
"""How long a call waits for what it may change to be remembered."""
_COMPARE_S: Final = 10.0

NO_CHANGES: Final = {"files": 0, "added": 0, "removed": 0, "complete": True}
"""The field `changes` of a turn that called no tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnChanges:
    """What a turn changed, as clients get it."""

    files: Sequence[dict[str, Any]]
    complete: bool

    def summary(self) -> dict[str, Any]:
        """Return the field `changes` of the turn result."""
        return {
            "files": len(self.files),
            "added": sum(file["added"] for file in self.files),
            "removed": sum(file["removed"] for file in self.files),
            "complete": self.complete,
        }


class TurnFileChanges:
    """Records one turn's changes. Never fails a call or the turn: what is not known makes it
    incomplete.
    """

    def __init__(self, workspace: Path, sanitizer: OutputSanitizer) -> None:
        self._recorder = ChangeRecorder(workspace)
        self._sanitizer = sanitizer
        self._one_at_a_time = anyio.CapacityLimiter(1)
        self._complete = True
        self._is_noted = False

    async def note(self, verdict: Allow) -> None:
        """Remember what an allowed call may change, before it runs."""
        if not verdict.changes or verdict.paths == ():
            return
        self._is_noted = True
        if verdict.paths is None:
            self._complete = False
            return
        with anyio.move_on_after(_NOTE_S) as scope:
            try:
                await anyio.to_thread.run_sync(
                    self._recorder.note_blocking,
                    verdict.paths,
                    abandon_on_cancel=True,
                    limiter=self._one_at_a_time,
                )
            except Exception:  # noqa: BLE001  knowing what changed is no condition of the call
                _log.exception("changes_not_noted")
                self._complete = False
        self._complete = self._complete and not scope.cancelled_caught

    async def compare(self) -> TurnChanges:
        """Return what was changed since."""
        if not self._is_noted:
            return TurnChanges(files=(), complete=True)
        with anyio.move_on_after(_COMPARE_S):
            try:
                return await anyio.to_thread.run_sync(
                    self._compare_blocking, abandon_on_cancel=True, limiter=self._one_at_a_time
                )
            except Exception:  # noqa: BLE001  the turn's result does not depend on it
                _log.exception("changes_not_compared")
        return TurnChanges(files=(), complete=False)

    def _compare_blocking(self) -> TurnChanges:
        changes = describe_blocking(self._recorder.changes_blocking(), self._sanitizer)
        return replace(changes, complete=changes.complete and self._complete)


def describe_blocking(changes: FileChanges, sanitizer: OutputSanitizer) -> TurnChanges:
    """Return changes as clients get them, masked and within the bounds of a turn."""
    files: list[dict[str, Any]] = []
    left_chars, left_masked_chars = MAX_TURN_CHARS, MAX_MASKED_CHARS
    for changed in changes.files:
        chars = len(changed.before or "") + len(changed.after or "")
        if chars > left_masked_chars:
            changed = replace(changed, before=None, after=None, unread="too_large")  # noqa: PLW2901
        else:
            left_masked_chars -= chars
        fields = _fields(changed, sanitizer)
        if fields["diff"] is not None and len(fields["diff"]) > left_chars:
            fields |= {"diff": None, "unread": "too_large"}
        left_chars -= len(fields["diff"] or "")
        files.append(fields)
    return TurnChanges(files=files, complete=changes.complete)


def _fields(changed: ChangedFile, sanitizer: OutputSanitizer) -> dict[str, Any]:
    """Return a changed file as clients get it; each text is masked before the
    two are compared.
    """
    shown = sanitizer.text
    fields: dict[str, Any] = {
        "path": shown(changed.path),
        "kind": changed.kind,
        "moved_from": None if changed.moved_from is None else shown(changed.moved_from),
        "size_bytes": changed.size_bytes,
        "added": 0,
        "removed": 0,
        "diff": None,
        "unread": changed.unread,
    }
    if changed.before is None or changed.after is None:
        return fields
    diff = diff_lines(sanitizer.streamed(changed.before), sanitizer.streamed(changed.after))
    fields |= {"added": diff.added, "removed": diff.removed}
    if not diff.text:
        is_masked = changed.before != changed.after  # the difference is in what is masked
        return fields | ({"unread": "secret"} if is_masked else {})
    text = diff.text
    if len(text) > MAX_DIFF_CHARS:
        text = text[:MAX_DIFF_CHARS].rpartition("\n")[0] + "\n"
        fields["unread"] = "too_large"
    old = "/dev/null" if changed.kind == "created" else f"a/{fields['path']}"
    new = "/dev/null" if changed.kind == "deleted" else f"b/{fields['path']}"
    return fields | {"diff": f"--- {old}\n+++ {new}\n{text}"}
