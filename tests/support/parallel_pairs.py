"""Pairs of calls that conversations make at once: one changes a file, the other swaps what its name stands for.

Each pair has a folder of its own in the workspace, and one outside, where nothing may change.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OLD, NEW = "as it was", "as it is now"
_NOTEBOOK = json.dumps(
    {
        "cells": [{"cell_type": "code", "id": "c1", "source": OLD, "metadata": {}, "outputs": []}],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
)
_FILES = {
    "source.txt": NEW,
    "target.txt": OLD,
    "target.ipynb": _NOTEBOOK,
    "folder/victim.txt": OLD,
    "folder/cell.ipynb": _NOTEBOOK,
    "tree/victim.txt": NEW,
    "holder/other.txt": OLD,
    "guide/other.txt": OLD,
}
_OUTSIDE = {
    "victim.txt": OLD,
    "folder/victim.txt": OLD,
    "folder/cell.ipynb": _NOTEBOOK,
    "cell.ipynb": _NOTEBOOK,
}
_HARD = {
    "hard.txt": "victim.txt",
    "hard.ipynb": "cell.ipynb",
    "holder/victim.txt": "victim.txt",
}
_LINKS = {
    "link.txt": "victim.txt",
    "link.ipynb": "cell.ipynb",
    "linked": "folder",
    "guide/victim.txt": "victim.txt",
}
"""Names of a pair's folder, and what of the folder outside they lead to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool; `{}` in its input stands for the pair's folder."""

    tool: str
    input: Mapping[str, str]

    def at(self, folder: Path) -> dict[str, Any]:
        """Return the step of a script that makes the call."""
        given = {key: text.replace("{}", str(folder)) for key, text in self.input.items()}
        return {"tool": self.tool, "input": given}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What one conversation changes, and with which commands the other one swaps it."""

    change: Call
    swaps: Sequence[Call]
    reads: str | None = None
    """The file that the agent program wants to have read before."""


def _bash(command: str) -> Call:
    return Call(tool="Bash", input={"command": command.replace("./", "{}/")})


def _write(name: str) -> Call:
    return Call(tool="Write", input={"file_path": f"{{}}/{name}", "content": NEW})


def _edit(name: str) -> Call:
    given = {"file_path": f"{{}}/{name}", "old_string": OLD, "new_string": NEW}
    return Call(tool="Edit", input=given)


def _edit_cell(name: str) -> Call:
    given = {"notebook_path": f"{{}}/{name}", "cell_id": "c1", "new_source": NEW}
    return Call(tool="NotebookEdit", input=given)


def _over(name: str, target: str) -> Sequence[Call]:
    return [_bash(f"mv ./{name} ./{target}")]


def _folder_for(name: str) -> Sequence[Call]:
    return [_bash("mv ./folder ./before"), _bash(f"mv ./{name} ./folder")]


_COPY = _bash("cp ./source.txt ./target.txt")
_LINKED, _HOLDER, _GUIDE = (_folder_for(name) for name in ("linked", "holder", "guide"))
KINDS: Mapping[str, Kind] = {
    "copy, hard link": Kind(change=_COPY, swaps=_over("hard.txt", "target.txt")),
    "copy, link": Kind(change=_COPY, swaps=_over("link.txt", "target.txt")),
    "write, hard link": Kind(
        change=_write("target.txt"), swaps=_over("hard.txt", "target.txt"), reads="target.txt"
    ),
    "write, link": Kind(
        change=_write("target.txt"), swaps=_over("link.txt", "target.txt"), reads="target.txt"
    ),
    "write anew, link": Kind(change=_write("new.txt"), swaps=_over("link.txt", "new.txt")),
    "edit, hard link": Kind(
        change=_edit("target.txt"), swaps=_over("hard.txt", "target.txt"), reads="target.txt"
    ),
    "edit, folder": Kind(
        change=_edit("folder/victim.txt"), swaps=_LINKED, reads="folder/victim.txt"
    ),
    "write, folder": Kind(change=_write("folder/new.txt"), swaps=_LINKED),
    "notebook, hard link": Kind(
        change=_edit_cell("target.ipynb"),
        swaps=_over("hard.ipynb", "target.ipynb"),
        reads="target.ipynb",
    ),
    "notebook, folder": Kind(
        change=_edit_cell("folder/cell.ipynb"), swaps=_LINKED, reads="folder/cell.ipynb"
    ),
    "remove, folder": Kind(change=_bash("rm ./folder/victim.txt"), swaps=_LINKED),
    "make, folder": Kind(change=_bash("mkdir ./folder/made"), swaps=_LINKED),
    "copy a tree, folder": Kind(change=_bash("cp -r ./tree ./folder"), swaps=_LINKED),
    "move, folder": Kind(change=_bash("mv ./source.txt ./folder/victim.txt"), swaps=_LINKED),
    "copy, folder with a hard link": Kind(
        change=_bash("cp ./tree/victim.txt ./folder"), swaps=_HOLDER
    ),
    "copy, folder with a link": Kind(change=_bash("cp ./tree/victim.txt ./folder"), swaps=_GUIDE),
}


class Ground:
    """The folders of pairs below a root: `ws`, the workspace, and `outside`."""

    def __init__(self, root: Path) -> None:
        self.workspace, self._outside = root / "ws", root / "outside"

    def lay_blocking(self, number: int) -> Path:
        """Make the folders of a pair and return the one in the workspace."""
        inside, outside = self.workspace / f"p{number}", self._outside / f"p{number}"
        for folder, files in ((inside, _FILES), (outside, _OUTSIDE)):
            for name, text in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8")
        for name, target in _HARD.items():
            (inside / name).hardlink_to(outside / target)
        for name, target in _LINKS.items():
            (inside / name).symlink_to(outside / target)
        return inside

    def effects_blocking(self, number: int) -> list[str]:
        """Return what has changed in a pair's folder outside."""
        outside = self._outside / f"p{number}"
        found = {
            str(path.relative_to(outside)): path.read_text("utf-8")
            for path in outside.rglob("*")
            if path.is_file()
        }
        made = {str(path.relative_to(outside)) for path in outside.rglob("*") if path.is_dir()}
        changed = [name for name in _OUTSIDE if found.get(name) != _OUTSIDE[name]]
        return sorted([*changed, *(found.keys() - _OUTSIDE.keys()), *(made - {"folder"})])
