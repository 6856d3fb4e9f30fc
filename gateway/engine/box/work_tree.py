"""What a box shows to a command in a work tree: its files and the repository, and no other file of
the workspace.

Of the repository a command changes objects, its own branch and its own work tree's index; what is
every work tree's or acts stands read-only. Blocks on the file system.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from gateway.engine.box.mounts import Folder
from gateway.engine.box.search import ACTING_IN_REPOSITORY, Protected, Searcher

WORKTREES: Final = ".candor-worktrees"
_NAME: Final = re.compile(r"[a-z0-9_]{1,80}")
_BRANCHES: Final = "refs/heads"
_OWN_BRANCHES: Final = "refs/heads/candor"
_SHARED: Final = (
    *("HEAD", "HEAD.lock", "index", "index.lock", "objects/info", "packed-refs"),
    *("packed-refs.lock", "shallow", "shallow.lock", _BRANCHES, "refs/bisect", "refs/replace"),
    *("rebase-merge", "rebase-apply", "sequencer", "MERGE_HEAD", "MERGE_MODE", "MERGE_MSG"),
    *("AUTO_MERGE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "BISECT_START"),
)
"""Of every work tree, or of what a person was doing in the workspace: `git rebase --continue` runs
what its list says. Locks that a command left would stop the others.
"""
_MOST_KEPT: Final = 64


def name_of(cwd: str, workspace: str) -> str | None:
    """Return the name of the work tree that a folder is in; None: it is in none."""
    rest = cwd.removeprefix(f"{workspace}/{WORKTREES}/")
    name = rest.split("/", 1)[0]
    return name if rest != cwd and _NAME.fullmatch(name) else None


class RepositorySearch:
    """Finds what is protected in a repository while a command runs in one of its work trees."""

    def __init__(self, root: Path, name: str) -> None:
        self._root = root
        self._own = f"worktrees/{name}"

    def search_blocking(self) -> tuple[tuple[Protected, ...], str]:
        """Return what is protected, as `Searcher.search_blocking` does."""
        found = list(self._find())
        return tuple(sorted(found, key=lambda one: one.path.split("/"))), ""

    def _find(self) -> Iterator[Protected]:
        acting = (*ACTING_IN_REPOSITORY, *_SHARED)
        own = (f"{self._own}/{name}" for name in (*ACTING_IN_REPOSITORY, "candor-ready"))
        for path in (*acting, *own):
            if os.path.lexists(self._root / path):
                yield Protected(path=path, kind="acting")
        yield Protected(path="credentials", kind="secret_file", is_secret=True)
        yield from (Protected(path=path, kind="repository") for path in (self._own, _OWN_BRANCHES))


class WorkTreeFolders:
    """The folders of boxes in work trees, and what searches them; those used last are kept."""

    def __init__(self, workspace: Folder) -> None:
        self._workspace = workspace
        self._searchers: dict[str, Searcher] = {}

    def of(self, name: str) -> tuple[Sequence[Folder], Sequence[Searcher | RepositorySearch]]:
        """Return the folders of a work tree's boxes, and the search of each."""
        at, source = self._workspace.at, self._workspace.source
        folders = [
            Folder(at=f"{at}/{below}", source=f"{source}/{below}", is_writable=True)
            for below in (f"{WORKTREES}/{name}", ".git")
        ]
        searcher = self._searchers.pop(name, None) or Searcher(Path(folders[0].source))
        self._searchers[name] = searcher
        while len(self._searchers) > _MOST_KEPT:
            del self._searchers[next(iter(self._searchers))]
        return folders, [searcher, RepositorySearch(Path(folders[1].source), name)]
