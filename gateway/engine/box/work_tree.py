"""What a box shows to a command in a work tree: its files and the repository, and no other file of
the workspace.

Of the repository a command changes its own branch and its own work tree's index, and adds objects
to a folder of the work tree's own, from which the server takes them; what is every work tree's or
acts stands read-only. Blocks on the file system.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from gateway.engine.box.mounts import Folder
from gateway.engine.box.search import WORKTREES, Protected, Searcher, read_link
from memory.notes.descriptors import create_file, opened_folder
from policies.paths.protected import ACTING_IN_REPOSITORY

_NAME: Final = re.compile(r"[a-z0-9_]{1,80}")
_BRANCHES: Final = "refs/heads"
_OWN_BRANCHES: Final = "refs/heads/candor"
_SHARED: Final = (
    *("HEAD", "HEAD.lock", "config.lock", "index", "index.lock", "packed-refs"),
    *("packed-refs.lock", "shallow", "shallow.lock", _BRANCHES, "refs/replace"),
)
"""Of every work tree. Locks that a command left would stop the others."""
_UNFINISHED: Final = (
    *("rebase-merge", "rebase-apply", "sequencer", "MERGE_HEAD", "MERGE_MODE", "MERGE_MSG"),
    *("MERGE_AUTOSTASH", "MERGE_RR", "AUTO_MERGE", "CHERRY_PICK_HEAD", "REVERT_HEAD"),
    *("BISECT_LOG", "BISECT_START", "refs/bisect"),
)
"""What a person is doing in the workspace: `git rebase --continue` runs what its list says, and
`git commit` brings the changes of an autostash.
"""
_IN_USE: Final = ("HEAD", "index")
"""These change when a person works in the workspace."""
_LOCK: Final = "index.lock"
"""Git writes an index there, which it takes when a person has written the message of a commit."""
_NO_BRANCHES: Final = b"# pack-refs with: peeled fully-peeled sorted \n"
"""What git itself writes into a list of packed branches that is empty."""
_OWN: Final = ("candor-ready", "objects/info")
_MOST_KEPT: Final = 64


def name_of(cwd: str, workspace: str) -> str | None:
    """Return the name of the work tree that a folder is in; None: it is in none."""
    rest = cwd.removeprefix(f"{workspace}/{WORKTREES}/")
    name = rest.split("/", 1)[0]
    return name if rest != cwd and _NAME.fullmatch(name) else None


class RepositorySearch:
    """Finds what is protected in a repository while a command runs in one of its work trees."""

    def __init__(self, root: Path, name: str, *, at: str) -> None:
        """Search the repository `root` of a workspace that links name `at`."""
        self._root = root
        self._own = f"worktrees/{name}"
        self._searcher = Searcher(root.parent, f"{root.name}/", at=at)

    def search_blocking(self) -> tuple[tuple[Protected, ...], str]:
        """Return what is protected, as `Searcher.search_blocking` does.

        What has to be there to be covered is made if it is missing: the folder of the work tree's
        own objects, and the list of packed branches, into which a command could else move all
        branches before it is removed as a protected name.
        """
        unclear = ""
        try:
            self._make((*self._own.split("/"), "objects", "info", "alternates"))
            self._make(("packed-refs",), _NO_BRANCHES)
        except OSError as exc:
            unclear = f"the repository cannot be covered ({exc.strerror})"
        known, why = self._searcher.search_blocking()
        found = {
            path: replace(entry, path=path, place=self._below(entry.place))
            for entry in known
            if (path := self._below(entry.path))
        }
        for entry in self._find():
            if not (entry.target and entry.path in found):
                found[entry.path] = entry
        return tuple(sorted(found.values(), key=lambda one: one.path.split("/"))), unclear or why

    def _below(self, path: str) -> str:
        top = f"{self._root.name}/"
        return path.removeprefix(top) if path.startswith(top) else ""

    def _make(self, parts: Sequence[str], content: bytes = b"") -> None:
        *folders, name = parts
        with (
            opened_folder(self._root, folders, make=True) as folder,
            suppress(FileExistsError),
            os.fdopen(create_file(name, folder), "wb") as file,
        ):
            file.write(content)

    def _find(self) -> Iterator[Protected]:
        acting = (*ACTING_IN_REPOSITORY, *_SHARED, *_UNFINISHED)
        own = (f"{self._own}/{name}" for name in (*ACTING_IN_REPOSITORY, *_OWN))
        for path in (*acting, *own):
            place = self._root / path
            if place.is_symlink():
                yield Protected(path=path, kind="link", target=read_link(f"{place}"))
            elif place.exists():
                changed_ns = place.stat().st_ctime_ns if path in _IN_USE else 0
                kind = "lock" if path == _LOCK and _is_written(place) else _kind(path)
                yield Protected(path=path, kind=kind, changed_ns=changed_ns)
        yield Protected(path="credentials", kind="secret_file", is_secret=True)
        writable = (self._own, f"{self._own}/objects", _OWN_BRANCHES)
        yield from (Protected(path=path, kind="repository") for path in writable)


def _kind(path: str) -> Literal["acting", "hidden", "unfinished"]:
    if path == "modules":  # of submodules, which no work tree has
        return "hidden"
    return "unfinished" if path in _UNFINISHED else "acting"


def _is_written(file: Path) -> bool:
    try:
        status = file.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size > 0


class WorkTreeFolders:
    """The folders of boxes in work trees, and what searches them; those used last are kept."""

    def __init__(self, workspace: Folder) -> None:
        self._workspace = workspace
        self._searches: dict[str, tuple[Searcher, RepositorySearch]] = {}

    def of(self, name: str) -> tuple[Sequence[Folder], Sequence[Searcher | RepositorySearch]]:
        """Return the folders of a work tree's boxes, and the search of each."""
        at, source = self._workspace.at, self._workspace.source
        tree, repository = [
            Folder(at=f"{at}/{below}", source=f"{source}/{below}", is_writable=True)
            for below in (f"{WORKTREES}/{name}", ".git")
        ]
        repository = replace(repository, own_objects=f"worktrees/{name}/objects")
        searches = self._searches.pop(name, None) or (
            Searcher(Path(tree.source), at=tree.at),
            RepositorySearch(Path(repository.source), name, at=at),
        )
        self._searches[name] = searches
        while len(self._searches) > _MOST_KEPT:
            del self._searches[next(iter(self._searches))]
        return (tree, repository), searches
