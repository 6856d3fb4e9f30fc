"""Takes away what a command left under protected names that were free before.

What stood there already is mounted read-only while the command runs. A name that was free cannot
be covered without making it on the disk for everybody, so it is looked at afterwards, when every
process of the box has ended. A new repository stays, with git's own settings and without hooks.
"""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from gateway.engine.box.descriptors import open_below_blocking, open_folder_blocking
from gateway.engine.box.git_settings import MAX_SETTINGS_BYTES, rewrite_settings
from gateway.engine.box.search import RESOLUTIONS, Protected, Searcher, read_link
from policies.paths.protected import find_acting

_REMOVED: Final = "removed-by-sandbox-"
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_LIST_OF_CONFLICTS: Final = "MERGE_RR"
"""Every commit fails while it names what is not in `RESOLUTIONS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What the agent is told of; paths below the workspace."""

    removed: list[str] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)
    """Settings of new repositories that lost something."""


def restore_blocking(
    root: Path, before: Sequence[Protected], after: Sequence[Protected], *, at: str
) -> Restored:
    """Remove what a command left, and return what the agent is to know of it.

    `root` is the workspace, `at` its path in the box. Raise `OSError` if something could not be
    removed, after the rest was.
    """
    restored = Restored()
    old = {entry.path: entry for entry in before}
    after = [*after, *_inside_new_secrets(root, old, after)]
    is_repository = partial(_is_protected_repository, root, at, after)
    faults: list[OSError] = []
    kept = "unfinished" if _has_been_used(old, after) else ""
    new = [
        entry
        for entry in after
        if entry.path not in old
        and entry.kind != kept
        and _is_within_reach(entry.path, old)
        and _acts(entry)
    ]
    now = {entry.path: entry for entry in after}
    links = [
        entry
        for entry in before
        if entry.target and now.get(entry.path) != entry and _is_within_reach(entry.path, old)
    ]
    for entry, is_new in (*((entry, True) for entry in new), *((entry, False) for entry in links)):
        try:
            with _found(root, entry.path) as place:
                if place is None or (not is_new and read_link(f"{place}") == entry.target):
                    continue
                if not (is_new and _is_settings(place)):
                    _remove(place)
                    restored.removed.append(entry.path)
                    if place.name == RESOLUTIONS:
                        _remove(place.with_name(_LIST_OF_CONFLICTS))
                elif _reset(place, is_repository):
                    restored.rewritten.append(entry.path)
                if not is_new:
                    place.symlink_to(entry.target)
        except OSError as exc:
            faults.append(exc)
    if faults:
        raise faults[0]
    return restored


@contextmanager
def _found(root: Path, path: str) -> Iterator[Path | None]:
    """Yield where an entry is, in its open folder; None if there is no such folder any more: a
    command may have put a link in its place, which leads anywhere.
    """
    folder, _, name = path.rpartition("/")
    opened = open_folder_blocking(root)
    try:
        below = open_below_blocking(opened, f"./{folder}/")
    except OSError as exc:
        if exc.errno not in _GONE:
            raise
        yield None
        return
    finally:
        os.close(opened)
    try:
        yield Path(f"/proc/self/fd/{below}", name)
    finally:
        os.close(below)


def _inside_new_secrets(
    root: Path, old: Collection[str], found: Sequence[Protected]
) -> Iterator[Protected]:
    """Yield what is protected in new folders with names of secrets. The search passes them over,
    because the next box shows them empty.
    """
    waiting = list(found)
    while waiting:
        folder = waiting.pop()
        if folder.kind == "secret_folder" and folder.path not in old:
            # from `./`, because it is no root of a workspace, where `logs` acts
            found, _ = Searcher(root / folder.path, "./").search_blocking()
            paths = (f"{folder.path}/{entry.path.removeprefix('./')}" for entry in found)
            inside = [replace(entry, path=path) for entry, path in zip(found, paths, strict=True)]
            yield from inside
            waiting += inside


def _has_been_used(old: Mapping[str, Protected], after: Sequence[Protected]) -> bool:
    """Return whether a person has worked in the repository while the command ran: what they have
    begun there, such as a rebase, is new as well.
    """
    known = ((old[entry.path], entry) for entry in after if entry.path in old)
    return any(before.changed_ns != now.changed_ns for before, now in known)


def _is_within_reach(path: str, old: Mapping[str, Protected]) -> bool:
    """Return whether a command may have made or changed an entry: it is in no folder that the box
    showed read-only. There somebody else makes some meanwhile, such as a new work tree's settings.
    """
    while path := path.rpartition("/")[0]:
        if path in old:
            return old[path].kind not in {"acting", "unfinished"}
    return True


def _acts(one: Protected) -> bool:
    """Return whether a new entry is dangerous: a secret of the command's own is not, unless its
    name acts as well, as `.gitconfig` does.
    """
    is_harmless = one.is_secret and find_acting(one.path.split("/")[-1:]) is None
    return not is_harmless and one.kind not in {"repository", "lock", "way"}


def _is_settings(entry: Path) -> bool:
    return entry.name == "config" and (entry.parent / "objects").is_dir()


def _reset(settings: Path, is_repository: Callable[[str], bool]) -> bool:
    """Reset a new repository's settings; return whether any of them was left out."""
    content, has_lost = rewrite_settings(_read(settings), is_repository)
    _remove(settings)
    settings.write_bytes(content)
    return has_lost


def _read(settings: Path) -> bytes:
    """Return the content of settings; of anything but a readable file of ordinary size what
    cannot be parsed.
    """
    try:
        status = settings.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_SETTINGS_BYTES:
            return settings.read_bytes()
    except OSError:
        pass
    return b"\0"


def _is_protected_repository(root: Path, at: str, found: Sequence[Protected], path: str) -> bool:
    """Return whether a path in the box is a repository of the workspace that the search found:
    its settings and hooks are protected, and no link leads to it.
    """
    place = os.path.normpath(path)
    if ".." in path.split("/") or not f"{place}/".startswith(f"{at}/"):
        return False
    below = place[len(at) + 1 :]
    inner = f"{below}/.git" if below else ".git"
    known = {entry.path: entry.kind for entry in found}
    folder = inner if known.get(inner) == "repository" else below
    objects = root / folder / "objects"
    is_whole = objects.is_dir() and not objects.is_symlink()
    return is_whole and known.get(f"{folder}/config") == "acting"


def _remove(path: Path) -> None:
    """Remove whatever stands at a path; no link is followed.

    A folder loses its name first. That always works, and deleting it may not: it may be deeper than
    a path can be long.
    """
    try:
        is_folder = stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return
    _make_accessible(path.parent)
    if not is_folder:
        path.unlink()
        return
    _make_accessible(path)  # else it cannot be renamed
    nameless = path.with_name(f"{_REMOVED}{secrets.token_hex(4)}")
    path.rename(nameless)
    with suppress(OSError, RecursionError):
        _open_up(nameless)
        shutil.rmtree(nameless)


def _make_accessible(folder: Path) -> None:
    """Set every right of a folder's owner."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        folder.chmod(mode | stat.S_IRWXU)


def _open_up(path: Path) -> None:
    """Make a folder and those below it accessible: a command may have closed them."""
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        _make_accessible(folder)
        with os.scandir(folder) as listing:
            waiting += (Path(entry) for entry in listing if entry.is_dir(follow_symlinks=False))
