"""Takes away what a command left under protected names that were free before.

What stood there already is mounted read-only while the command runs. A name that was free cannot
be covered without making it on the disk for everybody, so it is looked at afterwards, when every
process of the box has ended. A new repository stays, with git's own settings and without hooks.
"""

import os
import re
import secrets
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
_REMOVED: Final = "removed-by-sandbox-"
_SECTION: Final = re.compile(rb"(?m)^\s*\[([^\]\s]*)")
"""The name of a section of git's settings."""


def restore_blocking(
    root: Path, before: Sequence[Protected], after: Sequence[Protected]
) -> list[str]:
    """Return the paths of what was taken away; `root` is the workspace.

    Raise `OSError` if something could not be taken away, after the rest was.
    """
    taken: list[str] = []
    faults: list[OSError] = []
    old = {entry.path: entry for entry in before}
    new = [entry for entry in after if entry.path not in old and _acts(entry)]
    now = {entry.path: entry for entry in after}
    links = [entry for entry in before if entry.kind == "link" and now.get(entry.path) != entry]
    for entry in (*new, *links):
        try:
            if entry in links:
                _remove(root / entry.path)
                (root / entry.path).symlink_to(entry.target)
                taken.append(entry.path)
            elif _take_away(root / entry.path):
                taken.append(entry.path)
        except OSError as exc:
            faults.append(exc)
    if faults:
        raise faults[0]
    return taken


def _acts(one: Protected) -> bool:
    """Return whether a new entry is dangerous: a secret of the command's own is not."""
    return not one.is_secret and one.kind != "repository"


def _take_away(entry: Path) -> bool:
    """Remove an entry, or reset a repository's settings; return whether a person should know."""
    is_settings = entry.name == "config" and (entry.parent / "objects").is_dir()
    says_more = not is_settings or _says_more(entry)
    _remove(entry)
    if is_settings:
        entry.write_bytes(_NEW_SETTINGS)
    return says_more


def _says_more(settings: Path) -> bool:
    """Return whether a repository's settings say more than git writes into new ones."""
    if not stat.S_ISREG(settings.lstat().st_mode):
        return True
    return bool(set(_SECTION.findall(settings.read_bytes())) - {b"core"})


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
