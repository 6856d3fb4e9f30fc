"""Finds what is protected in a workspace, before and after a command in the box.

The names are the policy's, and those that git reads in a repository of any name. Dependency folders
are not looked into: their `*.pem` and the like are public, and there are many of them. Blocks on
the file system; no link is followed.
"""

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from policies.paths.protected import (
    ACTING_IN_REPOSITORY,
    find_acting,
    find_secret,
    fold,
    makes_repository,
    may_hold_acting,
)

Kind = Literal[
    "secret_file",
    "secret_folder",
    "acting",
    "unfinished",
    "lock",
    "hidden",
    "repository",
    "link",
    "open_link",
    "way",
]
"""`unfinished` is what a person may be doing in a repository, such as a rebase, and `lock` an index
that git has written for them and not taken yet: it is left alone. An `open_link` is one in a
repository, which git writes through, or in place of a folder some of whose names act; a
`way` is a link on the way of another one. What these two lead to is not protected for their sake.
"""

WORKTREES: Final = ".candor-worktrees"
"""The work trees of conversations, which a command outside of them does not see."""
DEPENDENCIES: Final = frozenset({"node_modules", "site-packages"})
_PACKAGES: Final = frozenset({"checkouts", "gems", "registry"})
"""The dependencies in the folders of `_PACKAGERS`; elsewhere these are ordinary names."""
_PACKAGERS: Final = frozenset({".bundle", ".cargo"})
_MOST_STEPS: Final = 100
"""On the way of a link: names of folders, and links."""
_STEP_COST: Final = 50
_MOST_FOR_LINKS: Final = 5_000_000
"""For all links of a search: so much for each step, and one for each character of a link."""
MAX_ENTRIES: Final = 1_000_000
_SETTINGS: Final = frozenset({"config", "config.worktree"})
_WITH_SETTINGS: Final = frozenset({"modules", "worktrees"})
"""Of a repository: the folders of others' settings."""
_DEPTH_OF_WORK_TREE: Final = 2
"""The names of `worktrees/NAME`, the part of a repository that is a work tree's own."""
RESOLUTIONS: Final = "rr-cache"
"""Into this folder of a repository a person's `git commit` copies the files that `MERGE_RR` names,
whatever they are, and a command can write that list (git-rerere(1)).
"""
_UNSEARCHED: Final = (ACTING_IN_REPOSITORY - _WITH_SETTINGS) | {RESOLUTIONS}
_SECRET_IN_REPOSITORY: Final = "credentials"  # noqa: S105  a name
_SYMBOLIC: Final = "HEAD"
"""With what stands in `refs`: git may make a link of it (`core.preferSymlinkRefs`), and writes
through no such link. Through others it does: a message would replace a branch.
"""
_SHOWN_CHARS: Final = 200
_SETTLED_NS: Final = 1_000_000_000
"""A folder that changed within this time before it was read may have changed again unseen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """A protected entry of the workspace."""

    path: str
    """Below the workspace, with `/`."""
    kind: Kind
    target: str = ""
    """Where a link leads, as it says."""
    place: str = field(default="", compare=False)
    """Where a `link` leads in the end, below the workspace; empty: not into it."""
    is_secret: bool = False
    changed_ns: int = field(default=0, compare=False)
    """When a file changed that no command can change, and a person's work does; else 0."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder as it was read."""

    state: tuple[int, int, int]
    """Device, inode, and when it changed, which no command can set."""
    folders: tuple[str, ...]
    """Names of those to look into."""
    found: tuple[Protected, ...]
    entries: int


class Searcher:
    """Searches one workspace again and again, and reads only the folders that changed."""

    def __init__(self, root: Path, top: str = "", *, at: str = "") -> None:
        """Search below `top` alone, which ends with `/` if it is not empty. Links name the root
        `at`, if that is not empty.
        """
        self._root = f"{root}/"
        self._top = top
        self._at = at or str(root)
        self._known: dict[str, _Folder] = {}
        self._unclear = ""
        self._left_for_links = 0

    def search_blocking(self) -> tuple[tuple[Protected, ...], str]:
        """Return what is protected, folders before what is in them; and why something may have been
        overlooked, as a part of a sentence, or nothing.
        """
        known: dict[str, _Folder] = {}
        entries = 0
        self._unclear = ""
        waiting = [self._top]
        while waiting:
            path = waiting.pop()
            folder = self._read(path)
            if folder is None:
                continue
            known[path] = folder
            entries += folder.entries
            if entries > MAX_ENTRIES:
                self._unclear = f"the workspace holds more than {MAX_ENTRIES} files"
                break
            waiting += (f"{path}{name}/" for name in folder.folders)
        self._known = known
        found = {entry.path: entry for folder in known.values() for entry in folder.found}
        self._left_for_links = _MOST_FOR_LINKS
        for link in [entry for entry in found.values() if entry.kind == "link"]:
            if self._left_for_links < 0:
                self._unclear = "the workspace holds too many links with protected names"
                break
            place, ways = self._follow(link)
            found[link.path] = replace(link, place=place)
            for way in ways:
                found.setdefault(way.path, way)
        return tuple(sorted(found.values(), key=lambda one: one.path.split("/"))), self._unclear

    def _follow(self, link: Protected) -> tuple[str, Sequence[Protected]]:
        """Return where a link leads, as `Protected.place`, and the links on the way there."""
        place, waiting = self._at, link.path.split("/")[::-1]
        ways: dict[str, Protected] = {}
        for _ in range(_MOST_STEPS):
            if not waiting:
                return _below(self._at, place), [*ways.values()]
            place = os.path.normpath(os.path.join(place, waiting.pop()))  # noqa: PTH118
            below = _below(self._at, place)
            self._left_for_links -= _STEP_COST
            target = read_link(self._root + below) if below else ""
            if target:
                self._left_for_links -= len(target)
                ways[below] = Protected(path=below, kind="way", target=target)
                place = "/" if target.startswith("/") else os.path.dirname(place)  # noqa: PTH120
                waiting += [name for name in target.split("/")[::-1] if name not in {"", "."}]
        return "", [*ways.values()]

    def _read(self, path: str) -> _Folder | None:
        """Return a folder, or None if it has gone or cannot be read. `path` is empty, or ends with
        `/`.
        """
        now = time.time_ns()
        try:
            status = os.lstat(self._root + path)  # joining with pathlib takes longer than the call
            state = (status.st_dev, status.st_ino, status.st_ctime_ns)
            before = self._known.get(path)
            if before is not None and before.state == state:
                return before
            folder = _look(path, self._list(path, status.st_mode), state)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as exc:
            if isinstance(exc, PermissionError) and _is_closed(path.split("/")[:-1]):
                return None  # no command can read it, either
            shown = path[:_SHOWN_CHARS].removesuffix("/") or "."
            self._unclear = f"the folder {shown} cannot be read ({exc.strerror})"
            return None
        if now - status.st_ctime_ns < _SETTLED_NS:
            return _Folder((0, 0, 0), folder.folders, folder.found, folder.entries)
        return folder

    def _list(self, path: str, mode: int) -> Sequence[os.DirEntry[str]]:
        """List a folder; one that its owner may not read is made readable."""
        folder = Path(self._root + path)
        if stat.S_IMODE(mode) & stat.S_IRWXU != stat.S_IRWXU and not os.access(
            folder, os.R_OK | os.X_OK
        ):
            folder.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)
        with os.scandir(folder) as listing:
            return list(listing)


def read_link(path: str) -> str:
    """Return where a link leads, as it says; empty if there is none, or none any more."""
    try:
        return os.readlink(path)  # noqa: PTH115  as it says, `./` included
    except OSError:
        return ""


def _below(at: str, place: str) -> str:
    return place.removeprefix(f"{at}/") if place.startswith(f"{at}/") else ""


def _look(path: str, listing: Sequence[os.DirEntry[str]], state: tuple[int, int, int]) -> _Folder:
    parts = tuple(path.split("/")[:-1])
    if (inside := _parts_in_git(parts)) is not None:
        return _look_in_git(path, inside, listing, state)
    if _is_closed(parts):
        return _look_for_secrets(path, parts, listing, state)
    is_repository = makes_repository({entry.name for entry in listing})
    folders: list[str] = []
    found: list[Protected] = []
    for entry in listing:
        is_folder = entry.is_dir(follow_symlinks=False)
        if is_folder and _is_git(entry.name):
            folders.append(entry.name)
            continue
        protected = _protect_in_repository(path, entry) if is_repository else None
        protected = protected or _protect(path, (*parts, entry.name), entry)
        if protected is None and (is_repository or may_hold_acting(entry.name)):
            is_reference = is_repository and entry.name == _SYMBOLIC
            protected = _find_open_link(path, entry, may_be_reference=is_reference)
        if protected is not None:
            found.append(protected)
        is_searched = protected is None or protected.kind == "acting"
        if is_searched and is_folder and entry.name not in DEPENDENCIES:
            folders.append(entry.name)
    return _Folder(state, tuple(folders), tuple(found), len(listing))


def _parts_in_git(parts: Sequence[str]) -> Sequence[str] | None:
    """Return where a folder is in a `.git`; None if it is in none, or in what acts or a module."""
    for i, part in enumerate(parts):
        if _is_git(part):
            inside = parts[i + 1 :]
            is_open = find_acting(parts[:i]) is None and inside[:1] != ("modules",)
            return inside if is_open else None
    return None


def _look_in_git(
    path: str,
    inside: Sequence[str],
    listing: Sequence[os.DirEntry[str]],
    state: tuple[int, int, int],
) -> _Folder:
    """Look for what acts, and for links: git writes messages and logs through them. The part of a
    work tree is read-only, or covered for the command in it, so only its settings are looked for.
    """
    names = {entry.name for entry in listing}
    is_repository = not inside or makes_repository(names)
    is_of_work_tree = inside[:1] == ("worktrees",) and len(inside) == _DEPTH_OF_WORK_TREE
    found = [] if inside else [Protected(path=path[:-1], kind="repository")]
    for entry in listing:
        protected = _protect_in_repository(path, entry) if is_repository else None
        if is_of_work_tree and protected and not (protected.is_secret or is_settings(entry.name)):
            protected = None
        if protected is None and _is_git(entry.name):
            protected = _describe(path, entry, is_secret=False)
        is_reference = "refs" in inside or entry.name == _SYMBOLIC
        protected = protected or _find_open_link(path, entry, may_be_reference=is_reference)
        if protected is not None:
            found.append(protected)
    known = {item.path.rpartition("/")[2] for item in found}
    unsearched = known - _WITH_SETTINGS if inside else _UNSEARCHED
    return _Folder(state, _folders(listing, names - unsearched), tuple(found), len(listing))


def _find_open_link(
    above: str, entry: os.DirEntry[str], *, may_be_reference: bool
) -> Protected | None:
    """Return a link, unless it is a reference that git made."""
    if not entry.is_symlink():
        return None
    target = read_link(entry.path)
    if not target:
        return None
    if may_be_reference and target.startswith("refs/") and ".." not in target.split("/"):
        return None
    return Protected(path=f"{above}{entry.name}", kind="open_link", target=target)


def _is_closed(parts: Sequence[str]) -> bool:
    """Return whether a folder is in one that acts, which a box shows read-only as a whole."""
    is_repository = bool(parts) and _is_git(parts[-1])
    return find_acting(parts[:-1] if is_repository else parts) is not None


def _look_for_secrets(
    path: str,
    parts: Sequence[str],
    listing: Sequence[os.DirEntry[str]],
    state: tuple[int, int, int],
) -> _Folder:
    """Look for what is not to be read, where nothing can be written."""
    names = {entry.name for entry in listing}
    is_in_git = any(map(_is_git, parts))
    if makes_repository(names) or (is_in_git and "HEAD" in names):
        inside = (_protect_in_repository(path, entry) for entry in listing)
        found = [item for item in inside if item and (item.is_secret or is_settings(item.path))]
        return _Folder(state, _folders(listing, _WITH_SETTINGS), tuple(found), len(listing))
    found = [
        _describe(path, entry, is_secret=True)
        for entry in listing
        if not is_in_git and find_secret((*parts, entry.name)) is not None
    ]
    packages = frozenset() if _PACKAGERS.isdisjoint(map(fold, parts)) else _PACKAGES
    below = names.difference(
        DEPENDENCIES, packages, (entry.path.rpartition("/")[2] for entry in found)
    )
    return _Folder(state, _folders(listing, below), tuple(found), len(listing))


def _folders(listing: Sequence[os.DirEntry[str]], names: Collection[str]) -> tuple[str, ...]:
    return tuple(
        entry.name
        for entry in listing
        if entry.name in names and entry.is_dir(follow_symlinks=False)
    )


def is_settings(path: str) -> bool:
    """Return whether a protected entry is the settings of a repository, by its name."""
    return fold(path.rpartition("/")[2]) in _SETTINGS


def _is_git(name: str) -> bool:
    return fold(name) in {".git", "git~1"}


def _protect(above: str, parts: tuple[str, ...], entry: os.DirEntry[str]) -> Protected | None:
    is_secret = find_secret(parts) is not None
    if is_secret or find_acting(parts) is not None:
        return _describe(above, entry, is_secret=is_secret)
    return None


def _protect_in_repository(above: str, entry: os.DirEntry[str]) -> Protected | None:
    name = fold(entry.name)
    if name == RESOLUTIONS and entry.is_dir(follow_symlinks=False):
        return Protected(path=f"{above}{entry.name}", kind="hidden")
    if name in ACTING_IN_REPOSITORY or name == _SECRET_IN_REPOSITORY:
        return _describe(above, entry, is_secret=name == _SECRET_IN_REPOSITORY)
    return None


def _describe(above: str, entry: os.DirEntry[str], *, is_secret: bool) -> Protected:
    path = f"{above}{entry.name}"
    is_folder = entry.is_dir(follow_symlinks=False)
    if entry.is_symlink():
        target = read_link(entry.path)
        return Protected(path=path, kind="link", target=target, is_secret=is_secret)
    if not is_secret:
        is_hidden = is_folder and fold(path) == WORKTREES
        return Protected(path=path, kind="hidden" if is_hidden else "acting")
    return Protected(
        path=path, kind="secret_folder" if is_folder else "secret_file", is_secret=True
    )


def ancestors(paths: Iterable[str]) -> Iterator[str]:
    """Yield the folders above these paths, each once, the upper ones first."""
    seen: set[str] = set()
    for path in paths:
        parts = path.split("/")
        for count in range(1, len(parts)):
            folder = "/".join(parts[:count])
            if folder not in seen:
                seen.add(folder)
                yield folder
