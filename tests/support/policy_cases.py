"""The policy cases ready to be judged: each with its workspace, as a line of JSON has it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.unit.policies.corpus import build_workspace, fill, read_told

File = Literal["policy-allow.jsonl", "policy-deny.jsonl"]


@dataclass(frozen=True, slots=True)
class ReadyCase:
    """One case, with the path of its workspace put in."""

    id: str
    cls: str
    told: Mapping[str, Any]
    """As `policy check` reads it."""
    prepared: bool
    """True if it has a workspace of its own."""

    @property
    def line(self) -> str:
        return json.dumps(self.told)


def ready_cases(file: File, directory: Path) -> list[ReadyCase]:
    """Make the workspaces of a file's cases; those that need no preparation share one."""
    shared = build_workspace(directory / "shared")
    return [_make_ready(told, directory, shared) for told in read_told(file)]


def _make_ready(row: Mapping[str, Any], directory: Path, shared: Path) -> ReadyCase:
    setup = tuple(row.get("setup", ()))
    workspace = build_workspace(directory / row["id"], setup) if setup else shared
    told = {
        "id": row["id"],
        "tool": row["tool"],
        "input": fill(row["input"], workspace),
        "workspace": str(workspace),
    }
    for key in ("hook_cwd", "platform", "config"):
        if key in row:
            told[key] = fill(row[key], workspace)
    return ReadyCase(row["id"], row["class"], told, prepared=bool(setup))
