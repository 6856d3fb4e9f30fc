"""The skills, sub-agents and commands of one workspace, as they stand now."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import anyio

from gateway.instructions import Instruction, Kind, names_of
from gateway.observability.masking import clip
from gateway.trust import TrustReport, review_folder_blocking
from policies.configuration import FOLDER, digest_of

REFRESH_S = 5.0
"""A change is noticed within this time. Each start of an agent, and each call of Skill, looks
anew."""
MAX_LISTED = 500
MAX_DESCRIPTION_CHARS = 1000
_MAX_LOOKED_AT = 2000
_FOLDERS = ("skills", "agents", "commands")
_LAUNCHED_BY: Mapping[str, tuple[Kind, ...]] = {"Skill": ("skill", "command"), "Agent": ("agent",)}

_Mark = tuple[tuple[str, int, int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionList:
    """What a workspace has, sorted by path; at most `MAX_LISTED`."""

    items: tuple[Instruction, ...]
    truncated: bool


class WorkspaceSkills:
    """What agents are given of a folder. Its last review is kept while no file of it changes."""

    def __init__(
        self, workspace: Path, approvals: Path | None, *, off: Collection[str] = ()
    ) -> None:
        """Initialise; skills named in `off` are given to no agent."""
        self._workspace = workspace
        self._approvals = approvals
        self._off = off
        self._known: tuple[_Mark, tuple[Instruction, ...]] | None = None
        self._next_at = 0.0
        self.revision = ""
        """Names what agents were given at the last `refresh`."""

    async def refresh(self) -> None:
        """Bring `revision` up to date unless that was done lately, because a turn waits for it; it
        stays if the folder cannot be read.
        """
        now = anyio.current_time()
        if now >= self._next_at:
            self._next_at = now + REFRESH_S
            self.revision = await anyio.to_thread.run_sync(self._revision_blocking)

    def names_blocking(self, tool: Literal["Skill", "Agent"] = "Skill") -> Collection[str]:
        """Return the names that a tool may launch now, sorted. Raise `OSError` if the approvals
        cannot be read.
        """
        return names_of(self._current_blocking(), _LAUNCHED_BY[tool])

    def typed_blocking(self) -> Collection[str]:
        """Return the skills and commands that a person can ask for with `/`, sorted; none if the
        approvals cannot be read.
        """
        try:
            return self.names_blocking()
        except OSError:
            return ()

    def list_blocking(self) -> InstructionList:
        """Look at the whole workspace. Where the approvals cannot be read, nothing is approved."""
        workspace = self._workspace.resolve()
        try:
            report = review_folder_blocking(workspace, self._approvals)
        except OSError:
            report = review_folder_blocking(workspace, None)
        items = sorted(self._without_off(report), key=lambda item: item.path)
        return InstructionList(items=tuple(items[:MAX_LISTED]), truncated=len(items) > MAX_LISTED)

    def _revision_blocking(self) -> str:
        try:
            given = [
                f"{item.path} {item.digest}" for item in self._current_blocking() if item.is_loaded
            ]
        except OSError:
            return self.revision
        return digest_of("\n".join(given).encode())

    def _current_blocking(self) -> tuple[Instruction, ...]:
        mark = tuple(self._look_blocking())
        if self._known is None or self._known[0] != mark:
            report = review_folder_blocking(self._workspace.resolve(), self._approvals)
            self._known = mark, tuple(self._without_off(report))
        return self._known[1]

    def _without_off(self, report: TrustReport) -> Iterator[Instruction]:
        for item in report.instructions or ():
            is_off = item.is_loaded and item.kind == "skill" and item.name in self._off
            yield replace(item, problem="off") if is_off else item

    def _look_blocking(self) -> Iterator[tuple[str, int, int, int, int]]:
        """Yield what changes with each file that an agent may be given, and with the approvals."""
        if self._approvals is not None:
            yield from _stat(str(self._approvals))
        count = 0
        for name in _FOLDERS:
            for folder, folders, files in os.walk(self._workspace / FOLDER / name):
                for entry in sorted((*folders, *files)):
                    count += 1
                    if count > _MAX_LOOKED_AT:
                        return
                    yield from _stat(os.path.join(folder, entry))  # noqa: PTH118  it is quicker


def _stat(path: str) -> Iterator[tuple[str, int, int, int, int]]:
    try:
        found = os.lstat(path)
    except OSError:
        return
    yield path, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def instruction_fields(item: Instruction) -> dict[str, Any]:
    """Return an instruction as clients see it."""
    return {
        "kind": item.kind,
        "name": item.name,
        "description": clip(item.description, MAX_DESCRIPTION_CHARS),
        "path": item.path,
        "trusted": item.is_trusted,
        "loaded": item.is_loaded,
        "problem": item.problem,
        "acts": [word for word in item.acts.split(", ") if word],
    }
