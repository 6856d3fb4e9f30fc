"""The state of the files and folders at and below a place of the workspace.

`ChangeRecorder` scans the same places before and after the calls of a turn. A scan follows no link
and is bounded; `covers` says of which paths it knows whether they were there.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memory.notes.descriptors import opened_folder

_ABSENT: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})

Parts = tuple[str, ...]
"""A path below the workspace, component by component; empty for the workspace itself."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What is known of a file, folder or other entry without reading it."""

    is_folder: bool
    is_file: bool
    mode: int
    """The permission bits."""
    inode: int
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    """Changes whenever the file is written, renamed or replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeScan:
    """The states of what was at and below one place."""

    place: Parts
    states: Mapping[str, FileState]
    """By path, those near the place first; the workspace itself is left out."""
    partial: frozenset[str]
    """Folders in which there may be more than `states` holds."""

    def covers(self, path: str) -> bool:
        """Return whether a path at or below the place would be in `states` if it had existed."""
        parts = path.split("/")
        for count in range(max(1, len(self.place)), len(parts) + 1):
            if "/".join(parts[:count]) not in self.states:
                return "/".join(parts[: count - 1]) not in self.partial
        return True


def scan_blocking(root: Path, place: Parts, limit: int) -> TreeScan:
    """Return up to `limit` files and folders at and below a place, those near it first."""
    states: dict[str, FileState] = {}
    partial: set[str] = set()
    waiting = deque([place])
    while waiting:
        parts = waiting.popleft()
        path = "/".join(parts)
        try:
            state = read_state_blocking(root, parts)
        except OSError:
            partial.add("/".join(parts[:-1]))
            continue
        if state is None:
            continue
        if parts and len(states) >= limit:
            partial.update("/".join(left[:-1]) for left in (parts, *waiting))
            break
        if parts:
            states[path] = state
        if state.is_folder:
            try:
                waiting.extend((*parts, name) for name in _names(root, parts))
            except OSError:
                partial.add(path)
    return TreeScan(place=place, states=states, partial=frozenset(partial))


def read_state_blocking(root: Path, parts: Parts) -> FileState | None:
    """Return the state of one path; None: nothing is there.

    Raise `OSError` if that cannot be known.
    """
    try:
        with opened_folder(root, parts[:-1]) as folder:
            status = os.stat(parts[-1] if parts else ".", dir_fd=folder, follow_symlinks=False)
    except OSError as exc:
        if exc.errno in _ABSENT:
            return None
        raise
    return FileState(
        is_folder=stat.S_ISDIR(status.st_mode),
        is_file=stat.S_ISREG(status.st_mode),
        mode=stat.S_IMODE(status.st_mode),
        inode=status.st_ino,
        size_bytes=status.st_size,
        mtime_ns=status.st_mtime_ns,
        ctime_ns=status.st_ctime_ns,
    )


def _names(root: Path, parts: Parts) -> Sequence[str]:
    with opened_folder(root, parts) as folder, os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)
