"""Workspaces with a `memory/` folder, as tests need them."""

import os
from collections.abc import Mapping
from pathlib import Path

SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
NS = 1_000_000_000
MANY = 2000


def workspace_with(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Make a workspace below `root` with files in its `memory/` folder, each a second younger."""
    workspace = root / "workspace"
    workspace.mkdir(exist_ok=True)
    for number, (name, content) in enumerate(files.items()):
        write(workspace, name, content, at_s=1_700_000_000 + number)
    return workspace


def write(workspace: Path, name: str, content: str | bytes, *, at_s: int | None = None) -> Path:
    """Write a file in the `memory/` folder, changed at a moment where one is given."""
    path = workspace / "memory" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    if at_s is not None:
        os.utime(path, ns=(at_s * NS, at_s * NS))
    return path


def many_notes(root: Path) -> Path:
    """Make a workspace with two thousand notes of a page each."""
    page = "The deploy window of the shop opens at nine and closes at ten. 部署窗口九点开。\n" * 20
    return workspace_with(
        root, {f"{n // 100}/note-{n}.md": f"# {n}\n\n{page}" for n in range(MANY)}
    )
