"""Brings the files of a work tree into an index whose marks a command may have set.

Blocks, and raises `GitFailed` as git fails.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gateway.worktrees.git import GitFailed, WorkTree

_LEFT_OUT: Final = "outside of your sparse-checkout"
_UNTAKEN: Final = re.compile(r"^error: '(.+?)/?' does not have a commit checked out", re.MULTILINE)


def add_all_blocking(tree: WorkTree, index: Path | None = None) -> list[str]:
    """Add all files of a work tree to an index; return the folders that it cannot take in, because
    they are repositories without a commit.
    """
    _show_hidden(tree, index)
    untaken = _add(tree, index, "-A")
    return untaken + (_add_left_out(tree, index) if tree.is_sparse_blocking() else [])


def _add_left_out(tree: WorkTree, index: Path | None) -> list[str]:
    """Add the files that are where a sparse checkout leaves out some: `git add -A` takes none in,
    and with `--sparse` it would take what is left out for deleted. It goes first, because git
    compares each file of the index with each name that it is given.
    """
    words = ("ls-files", "--others", "--modified", "--exclude-standard", "-z")
    listed = tree.run_blocking(*words, index=index).split(b"\0")
    top = os.path.realpath(os.fsencode(tree.folder))
    given = b"\0".join(path for path in listed if path and _is_in(top, path.rstrip(b"/")))
    from_input = ("--pathspec-from-file=-", "--pathspec-file-nul")
    return _add(tree, index, "--sparse", *from_input, given=given) if given else []


def _is_in(top: bytes, path: bytes) -> bool:
    """Return whether something is at a path below a folder, without a link on the way."""
    folder, name = os.path.split(os.path.join(top, path))  # noqa: PTH118  bytes
    return os.path.realpath(folder) == folder and os.path.lexists(os.path.join(folder, name))  # noqa: PTH118


def _add(tree: WorkTree, index: Path | None, *words: str, given: bytes = b"") -> list[str]:
    try:
        tree.run_blocking("add", "--ignore-errors", *words, given=given, index=index)
    except GitFailed as exc:
        untaken = _UNTAKEN.findall(exc.errors)
        is_partial = untaken or _LEFT_OUT in exc.errors
        if not is_partial or exc.errors.count("error: ") != len(untaken):
            raise
        return untaken
    return []


def skipped_blocking(tree: WorkTree) -> set[str]:
    """Return the paths that a sparse checkout leaves out; none if a tree is no such."""
    if not tree.is_sparse_blocking():
        return set()
    listed = tree.run_blocking("ls-files", "-v", "-z").decode(errors="surrogateescape")
    return {line[2:] for line in listed.split("\0") if line[:1] in {"S", "s"}}


def overwritten_blocking(tree: WorkTree, head: str, commit: str) -> list[str]:
    """Return where files stand that a change between commits replaces or deletes, and that are in
    no index or differ from it.
    """
    names = ("--ignore-submodules", "--name-only", "-z")
    told = tree.run_blocking("diff-tree", "-r", "--no-renames", *names, head, commit)
    changed = {*told.split(b"\0")[:-1]}
    differing = tree.run_blocking("diff-files", "--diff-filter=d", *names)
    found = changed.intersection(differing.split(b"\0"))
    known = {*tree.run_blocking("ls-files", "-z").split(b"\0")}
    top = os.path.realpath(os.fsencode(tree.folder))
    for path in changed:
        place = _standing(top, path)
        if place and not known.issuperset(_files(top, place)):
            found.add(place)
    return [path.decode(errors="surrogateescape") for path in found]


def _standing(top: bytes, path: bytes) -> bytes | None:
    """Return the path of the first that is no folder on the way to a path, or else that path; None:
    nothing is there.
    """
    parts = path.split(b"/")
    for count in range(1, len(parts) + 1):
        place = b"/".join(parts[:count])
        try:
            mode = os.lstat(os.path.join(top, place)).st_mode  # noqa: PTH118  bytes
        except OSError:
            return None
        if not stat.S_ISDIR(mode):
            return place
    return path


def _files(top: bytes, path: bytes) -> Iterator[bytes]:
    """Yield the paths of the files in a folder; of a file or link its own."""
    place = os.path.join(top, path)  # noqa: PTH118  bytes
    if os.path.islink(place) or not os.path.isdir(place):  # noqa: PTH112,PTH114
        yield path
        return
    for folder, _, names in os.walk(place):
        yield from (os.path.relpath(os.path.join(folder, name), top) for name in names)  # noqa: PTH118


def _show_hidden(tree: WorkTree, index: Path | None) -> None:
    """Take the marks away by which git passes over files that differ. A file that is not there
    stays marked, because a sparse checkout leaves it out.
    """
    listed = tree.run_blocking("ls-files", "-v", "-z", index=index).split(b"\0")
    skipped = [line[2:] for line in listed if line[:1] in {b"S", b"s"}]
    folder = os.fsencode(tree.folder)
    marked = {
        "--no-assume-unchanged": [line[2:] for line in listed if line[:1].islower()],
        "--no-skip-worktree": [
            path
            for path in skipped
            if os.path.lexists(os.path.join(folder, path))  # noqa: PTH118
        ],
    }
    for option, paths in marked.items():
        if paths:
            words = ("update-index", option, "-z", "--stdin")
            tree.run_blocking(*words, given=b"\0".join(paths), index=index)
