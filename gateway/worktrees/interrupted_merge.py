"""A merge that a killed server had begun to bring into a workspace, and a person may have worked
there since.

Each path of the merge is as it was before, or as it is after, or somebody changed it: the file, or
what is staged of it. Everything here blocks, and raises `GitFailed` as git fails.
"""

import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from gateway.worktrees.git import GitFailed, WorkTree
from memory.notes.descriptors import opened_folder


class InterruptedMerge:
    """The merge, by the commits that it brings a workspace from and to."""

    def __init__(self, tree: WorkTree, before: str, after: str, index: Path) -> None:
        """Initialise; `index` is a file for an index in place of the workspace's own."""
        self._tree = tree
        self._before = before
        self._after = after
        self._index = index
        words = ("diff-tree", "-r", "-z", "--name-status", "--no-renames", before, after)
        told = _names(tree.run_blocking(*words))
        self._paths = dict(zip(told[1::2], told[::2], strict=True))

    def changed_blocking(self) -> list[str]:
        """Return the paths that somebody changed since, sorted."""
        files = self._files_unlike(self._before, "A") & self._files_unlike(self._after, "D")
        staged = self._staged_unlike(self._before) & self._staged_unlike(self._after)
        return sorted(files | staged)

    def undo_blocking(self, kept: Collection[str]) -> None:
        """Bring all paths but those `kept` back to what they were. May be done again."""
        ours = self._files_unlike(self._before, "A").difference(kept)
        added = {path for path in ours if self._paths[path] == "A"}
        staged = self._paths.keys() - self._staged_unlike(self._after)
        self._with_index(
            self._before, "checkout-index", "-f", "-q", "-z", "--stdin", given=ours - added
        )
        for path in added:
            delete_blocking(self._tree.folder, path.split("/"))
        if staged:
            words = ("reset", "-q", self._before, "--pathspec-from-file=-", "--pathspec-file-nul")
            self._tree.run_blocking(*words, given=_lines(staged))

    def _files_unlike(self, commit: str, absent: str) -> set[str]:
        """Return the paths whose file is not as in a commit; `absent` is the kind of those that it
        has not.
        """
        unlike = set(_names(self._with_index(commit, "diff-files", "--name-only", "-z")))
        there = {
            path
            for path, kind in self._paths.items()
            if kind == absent and os.path.lexists(self._tree.folder / path)
        }
        return unlike & self._paths.keys() | there

    def _staged_unlike(self, commit: str) -> set[str]:
        words = ("diff-index", "--cached", "--name-only", "-z", commit)
        return set(_names(self._tree.run_blocking(*words))) & self._paths.keys()

    def _with_index(self, commit: str, *words: str, given: Iterable[str] = ()) -> bytes:
        """Run a command of git with the index of a commit."""
        try:
            self._tree.run_blocking("read-tree", commit, index=self._index)
            with suppress(GitFailed):  # it ends so if files differ
                self._tree.run_blocking("update-index", "-q", "--refresh", index=self._index)
            return self._tree.run_blocking(*words, given=_lines(given), index=self._index)
        finally:
            self._index.unlink(missing_ok=True)


def _names(told: bytes) -> list[str]:
    return told.decode(errors="surrogateescape").split("\0")[:-1]


def _lines(paths: Iterable[str]) -> bytes:
    return "\0".join(sorted(paths)).encode(errors="surrogateescape")


def delete_blocking(root: Path, parts: Sequence[str]) -> None:
    """Delete a file, and the folders above it that are empty then; no link is followed."""
    with suppress(OSError), opened_folder(root, parts[:-1]) as folder:
        os.unlink(parts[-1], dir_fd=folder)
    for count in range(len(parts) - 1, 0, -1):
        with suppress(OSError), opened_folder(root, parts[: count - 1]) as folder:
            os.rmdir(parts[count - 1], dir_fd=folder)
