"""Takes away what a command left under protected names that were free before.

What stood there already is mounted read-only while the command runs. A name that was free cannot
be covered without making it on the disk for everybody, so it is looked at afterwards, when every
process of the box has ended. A new repository stays, with git's own settings and without hooks.
"""

import os
import re
import shutil
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from gateway.engine.box.search import Protected

_NEW_SETTINGS: Final = b"""\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
"""
_SECTION: Final = re.compile(rb"(?m)^\s*\[([^\]\s]*)")
"""The name of a section of git's settings."""


def restore_blocking(
    root: Path, before: Sequence[Protected], after: Sequence[Protected]
) -> list[str]:
    """Return the paths of what was taken away; `root` is the workspace."""
    taken = []
    old = {one.path: one for one in before}
    for one in after:
        known = old.get(one.path)
        if known is None and not one.is_secret and one.kind != "repository":
            told = _take_away(root, one.path)
            taken += [one.path] if told else []
    now = {one.path: one for one in after}
    for link in (one for one in before if one.kind == "link" and now.get(one.path) != one):
        path = root / link.path
        _remove(path)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(link.target)
        taken.append(link.path)
    return taken


def _take_away(root: Path, path: str) -> bool:
    """Remove an entry, or reset a repository's settings; return whether a person should know."""
    entry = root / path
    is_settings = entry.name == "config" and (entry.parent / "objects").is_dir()
    told = True
    if is_settings:
        told = _says_more(entry)
    _remove(entry)
    if is_settings:
        entry.write_bytes(_NEW_SETTINGS)
    return told


def _says_more(settings: Path) -> bool:
    """Return whether a repository's settings say more than git writes into new ones."""
    if not stat.S_ISREG(settings.lstat().st_mode):
        return True
    return bool(set(_SECTION.findall(settings.read_bytes())) - {b"core"})


def _remove(path: Path) -> None:
    """Remove whatever stands at a path; no link is followed."""
    try:
        is_folder = stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return
    _make_accessible(path.parent)
    if not is_folder:
        path.unlink()
        return
    _open_up(path)
    shutil.rmtree(path)


def _make_accessible(folder: Path) -> None:
    """Give the owner of a folder every right in it."""
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
