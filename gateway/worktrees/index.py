"""Brings the files of a work tree into an index whose marks a command may have set.

Blocks, and raises `GitFailed` as git fails.
"""

import re
from pathlib import Path
from typing import Final

from gateway.worktrees.git import GitFailed, WorkTree

_UNTAKEN: Final = re.compile(r"^error: '(.+?)/?' does not have a commit checked out", re.MULTILINE)


def add_all_blocking(tree: WorkTree, index: Path | None = None) -> list[str]:
    """Add all files of a work tree to an index; return the folders that it cannot take in, because
    they are repositories without a commit.
    """
    _show_hidden(tree, index)
    try:
        tree.run_blocking("add", "-A", "--ignore-errors", index=index)
    except GitFailed as exc:
        untaken = _UNTAKEN.findall(exc.errors)
        if not untaken or exc.errors.count("error: ") != len(untaken):
            raise
        return untaken
    return []


def _show_hidden(tree: WorkTree, index: Path | None) -> None:
    """Take the marks away by which git passes over files that differ."""
    listed = tree.run_blocking("ls-files", "-v", "-z", index=index).split(b"\0")
    marked = {
        "--no-assume-unchanged": [line[2:] for line in listed if line[:1].islower()],
        "--no-skip-worktree": [line[2:] for line in listed if line[:1] in {b"S", b"s"}],
    }
    for option, paths in marked.items():
        if paths:
            words = ("update-index", option, "-z", "--stdin")
            tree.run_blocking(*words, given=b"\0".join(paths), index=index)
