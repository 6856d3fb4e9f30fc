"""The state of files before a turn changes them, and what was changed in the end.

`ChangeRecorder.note_blocking` is called before each call that may change something, with every path
that the policy knows the call to touch. What lies there is remembered once a turn: names and times
of all of it, and contents within a budget. `changes_blocking` looks at the same places again.
Changes by others at the same time look like this turn's. Files that hold secrets are never read.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from gateway.files.tree_scan import FileState, TreeScan, read_state_blocking, scan_blocking
from memory.notes.descriptors import open_file
from policies.paths.protected import find_secret

MAX_FILE_BYTES: Final = 200_000
"""Larger files are compared by their times and sizes alone."""
MAX_KEPT_BYTES: Final = 8_000_000
"""Of contents remembered in one turn."""
MAX_KEPT_FILES: Final = 500
MAX_NOTED: Final = 5_000
"""Files and folders remembered in one turn."""

Kind = Literal["created", "modified", "deleted", "moved"]
Unread = Literal["binary", "too_large", "secret", "unknown_before"]
"""Why there is no text: no UTF-8, more than the limits, a protected name, or not remembered in
time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """One file that differs from what it was."""

    path: str
    """Relative to the workspace; a folder's ends with a slash."""
    kind: Kind
    size_bytes: int | None
    """None: it was deleted."""
    before: str | None
    after: str | None
    """The texts; both None if `unread` says why."""
    moved_from: str | None = None
    unread: Unread | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanges:
    """What was changed."""

    files: Sequence[ChangedFile]
    complete: bool
    """False: something may have been changed that is not among `files`."""


@dataclass(frozen=True, slots=True)
class _Difference:
    """What was at a path and what is there; a file that became a folder, or the other way round,
    makes two: one is gone, the other is new.
    """

    path: str
    old: FileState | None
    new: FileState | None


class ChangeRecorder:
    """Remembers the places of one turn. One thread at a time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._scans: list[TreeScan] = []
        self._before: dict[str, FileState] = {}
        self._contents: dict[str, bytes] = {}
        self._left_bytes, self._left_files = MAX_KEPT_BYTES, MAX_KEPT_FILES
        self.complete = True
        """Everything that was touched is known; set to False by a caller who knows of more."""

    def note_blocking(self, paths: Sequence[str]) -> None:
        """Remember what is at absolute paths and, if they are folders, below them."""
        for path in paths:
            parts = self._below_root(path)
            if parts is None:
                self.complete = False  # a further directory; its paths are not for clients
            elif not self._is_noted(parts):
                scan = self._scan(parts, MAX_NOTED - len(self._before))
                for below, state in scan.states.items():
                    if below not in self._before and not self._is_noted(below.split("/")):
                        self._before[below] = state
                        self._keep(below, state, self._contents)
                self._scans.append(scan)

    def changes_blocking(self) -> FileChanges:
        """Compare the remembered places with what is there now."""
        after = self._states_now()
        self._left_bytes, self._left_files = MAX_KEPT_BYTES, MAX_KEPT_FILES
        contents: dict[str, bytes] = {}
        for path, state in after.items():
            if state != self._before.get(path):
                self._keep(path, state, contents)
        changed = [
            difference
            for path in sorted({**self._before, **after})
            for difference in self._differences(path, after.get(path), contents)
        ]
        origins = self._origins(changed, contents)
        moved_away = set(origins.values())
        filled = _folders_above(difference.path for difference in changed)
        files = [
            self._changed_file(
                difference, contents, origins.get(difference.path) if difference.new else None
            )
            for difference in changed
            if not (difference.new is None and difference.path in moved_away)
            and not (difference.path in filled and _is_made_or_removed_folder(difference))
        ]
        return FileChanges(files=files, complete=self.complete)

    def _below_root(self, path: str) -> tuple[str, ...] | None:
        """Return where a path leads, below the workspace; None if it lies elsewhere."""
        root = os.path.realpath(self._root)
        folder, name = os.path.split(os.path.normpath(path))
        real = os.path.normpath(os.path.join(os.path.realpath(folder), name))  # noqa: PTH118
        if real == root or os.path.realpath(path) == root:
            return ()
        return tuple(real[len(root) + 1 :].split("/")) if real.startswith(f"{root}/") else None

    def _is_noted(self, parts: Sequence[str]) -> bool:
        return any(_is_below(parts, scan) for scan in self._scans)

    def _scan(self, parts: tuple[str, ...], limit: int) -> TreeScan:
        scan = scan_blocking(self._root, parts, limit)
        self.complete = self.complete and not scan.partial
        return scan

    def _states_now(self) -> Mapping[str, FileState]:
        """Return what is there now, without what may have been there before unnoted.

        A remembered path that is missing here is gone: each that the scans did not reach is looked
        at by itself.
        """
        now: dict[str, FileState] = {}
        for noted in self._scans:
            now.update(self._scan(noted.place, MAX_NOTED - len(now)).states)
        now = {path: state for path, state in now.items() if self._was_known(path)}
        for path in [path for path in self._before if path not in now]:
            try:
                state = read_state_blocking(self._root, tuple(path.split("/")))
            except OSError:
                self.complete = False
                state = self._before[path]  # not known to differ
            if state is not None:
                now[path] = state
        return now

    def _was_known(self, path: str) -> bool:
        """Return whether it is known what was at a path before, be it nothing."""
        parts = path.split("/")
        first = next(scan for scan in self._scans if _is_below(parts, scan))
        return path in self._before or first.covers(path)

    def _keep(self, path: str, state: FileState, contents: dict[str, bytes]) -> None:
        """Read a file into `contents` if it is small, no secret, and there is room."""
        parts = path.split("/")
        has_room = self._left_files > 0 and state.size_bytes <= min(
            MAX_FILE_BYTES, self._left_bytes
        )
        if not (state.is_file and has_room) or find_secret(parts) is not None:
            return
        try:
            with os.fdopen(open_file(self._root, parts), "rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
        except OSError:
            return
        if len(content) <= MAX_FILE_BYTES:
            self._left_bytes -= len(content)
            self._left_files -= 1
            contents[path] = content

    def _differences(
        self, path: str, new: FileState | None, contents: Mapping[str, bytes]
    ) -> Iterator[_Difference]:
        old = self._before.get(path)
        if old is None or new is None:
            yield _Difference(path, old, new)
        elif old.is_folder != new.is_folder:
            yield _Difference(path, old, None)
            yield _Difference(path, None, new)
        elif old.mode != new.mode:
            yield _Difference(path, old, new)
        elif old != new and not old.is_folder:
            known = self._contents.get(path)
            if known is None or known != contents.get(path):
                yield _Difference(path, old, new)

    def _origins(
        self, changed: Sequence[_Difference], contents: Mapping[str, bytes]
    ) -> dict[str, str]:
        """Return where each moved file came from: the same inode, or the same
        content, not empty.
        """
        gone: dict[str, int] = {}
        by_key: dict[object, list[str]] = {}
        for change in reversed(changed):
            if change.old and change.old.is_file and not change.new:
                gone[change.path] = len(gone)
                for key in _keys(change.old, self._contents.get(change.path)):
                    by_key.setdefault(key, []).append(change.path)
        origins: dict[str, str] = {}
        for change in changed:
            if change.new is None or change.old is not None or not change.new.is_file:
                continue
            keys = _keys(change.new, contents.get(change.path))
            found = [_last_left(by_key.get(key, []), gone) for key in keys]
            candidates = [path for path in found if path is not None]
            if candidates:
                origins[change.path] = max(candidates, key=gone.__getitem__)
                del gone[origins[change.path]]
        return origins

    def _changed_file(
        self, difference: _Difference, contents: Mapping[str, bytes], origin: str | None
    ) -> ChangedFile:
        path, old_state, state = difference.path, difference.old, difference.new
        states = [known for known in (old_state, state) if known is not None]
        kind: Kind = "modified" if old_state and state else "created" if state else "deleted"
        old = _text(old_state, self._contents.get(path))
        new = _text(state, contents.get(path))
        unread: Unread | None = None
        if origin is not None:
            kind, old, new = "moved", "", ""
        elif old is None or new is None:
            is_unknown = old is None and path not in self._contents
            is_large = any(known.size_bytes > MAX_FILE_BYTES for known in states)
            is_left_out = new is None and path not in contents and state and state.is_file
            unread = "unknown_before" if is_unknown else "binary"
            unread = "too_large" if is_large or (is_left_out and not is_unknown) else unread
            unread = "secret" if find_secret(path.split("/")) else unread
        return ChangedFile(
            path=f"{path}/" if _is_folder(difference) else path,
            kind=kind,
            size_bytes=state.size_bytes if state is not None and state.is_file else None,
            before=None if unread else old,
            after=None if unread else new,
            moved_from=origin,
            unread=unread,
        )


def _keys(state: FileState, content: bytes | None) -> Iterator[object]:
    """Yield what a file keeps when it moves: its number with size and time, and its content."""
    yield state.inode, state.size_bytes, state.mtime_ns
    if content:
        yield content


def _last_left(paths: list[str], left: Collection[str]) -> str | None:
    """Return the last of the paths that is left, without those behind it."""
    while paths and paths[-1] not in left:
        paths.pop()
    return paths[-1] if paths else None


def _is_folder(difference: _Difference) -> bool:
    return any(state.is_folder for state in (difference.old, difference.new) if state)


def _is_made_or_removed_folder(difference: _Difference) -> bool:
    return _is_folder(difference) and not (difference.old and difference.new)


def _is_below(parts: Sequence[str], scan: TreeScan) -> bool:
    """Return whether a path is at or below the place of a scan."""
    return tuple(parts[: len(scan.place)]) == scan.place


def _text(state: FileState | None, content: bytes | None) -> str | None:
    """Return a file's text; of nothing or a folder the empty text, of anything else None."""
    if state is None or state.is_folder:
        return ""
    if content is None or b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _folders_above(paths: Iterable[str]) -> set[str]:
    """Return the folders with a change in them, which tells enough of one that was made or removed
    together with what is in it.
    """
    found: set[str] = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while above and above not in found:
            found.add(above)
            above = above.rpartition("/")[0]
    return found
