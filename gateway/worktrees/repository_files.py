"""Reads and writes single files in a repository that agents can write, without following a link."""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from memory.notes.descriptors import create_file, open_file, opened_folder

_MAX_BYTES: Final = 256 * 1024 * 1024
"""Of a file that is read whole or copied: an index of two million files."""
_ABSENT: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO})
"""What says that a name is free, or that something else stands there, a socket for ENXIO."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CLOSED: Final = getattr(os, "O_PATH", os.O_RDONLY) | _FOLDER
"""How a folder is opened that may not be listed."""


class RepositoryFiles:
    """The files below one folder, by the parts of their paths.

    A component that is a link or missing raises `OSError`, unless a method says otherwise. Any
    other fault raises it, too: a file that cannot be opened now may be there.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def has_folder(self, parts: Sequence[str]) -> bool:
        """Return whether a folder is there."""
        try:
            with opened_folder(self._root, parts):
                return True
        except OSError as exc:
            _raise_unless_absent(exc)
            return False

    def has_file(self, parts: Sequence[str]) -> bool:
        """Return whether a regular file is there."""
        try:
            os.close(open_file(self._root, parts))
        except OSError as exc:
            _raise_unless_absent(exc)
            return False
        return True

    def names(self, parts: Sequence[str]) -> list[str]:
        """Return the names in a folder, in no order; none if it is missing."""
        try:
            with opened_folder(self._root, parts) as folder:
                return os.listdir(folder)  # noqa: PTH208  a descriptor
        except OSError as exc:
            _raise_unless_absent(exc)
            return []

    def open(self, parts: Sequence[str]) -> BinaryIO:
        """Open a regular file for reading."""
        return os.fdopen(open_file(self._root, parts), "rb")

    def read(self, parts: Sequence[str]) -> bytes | None:
        """Return the content of a regular file; None if there is none, or it is too large."""
        try:
            opened = open_file(self._root, parts)
        except OSError as exc:
            _raise_unless_absent(exc)
            return None
        with os.fdopen(opened, "rb") as file:
            return file.read() if os.fstat(opened).st_size <= _MAX_BYTES else None

    def copy(self, parts: Sequence[str], target: Path) -> None:
        """Copy a regular file of bounded size. Raise `OSError` if it is not one."""
        content = self.read(parts)
        if content is None:
            raise FileNotFoundError(parts[-1])
        target.write_bytes(content)

    def write(self, parts: Sequence[str], content: bytes) -> None:
        """Write a file as a whole; whatever stands in its place is replaced, a link not followed.

        Missing folders are made.
        """

        def write_content(file: BinaryIO) -> bool:
            file.write(content)
            return True

        self.fill(parts, write_content)

    def fill(self, parts: Sequence[str], fill: Callable[[BinaryIO], bool]) -> bool:
        """Write a file as `write` does, with what `fill` writes; if that returns False, nothing
        changes.
        """
        return self._fill(parts, fill, f".{parts[-1]}.{secrets.token_hex(4)}.part", 0o644)

    def fill_object(self, parts: Sequence[str], fill: Callable[[BinaryIO], bool]) -> bool:
        """Write a loose object as `fill` does; `git prune` removes what a kill leaves of it."""
        return self._fill(parts, fill, f"tmp_obj_{secrets.token_hex(4)}", 0o444)

    def _fill(
        self, parts: Sequence[str], fill: Callable[[BinaryIO], bool], part: str, mode: int
    ) -> bool:
        with opened_folder(self._root, parts[:-1], make=True) as folder:
            try:
                with os.fdopen(create_file(part, folder), "wb") as file:
                    is_kept = fill(file)
                    file.flush()
                    os.fchmod(file.fileno(), mode)
                    os.fsync(file.fileno())
                if is_kept:
                    _put(part, parts[-1], folder)
                else:
                    os.unlink(part, dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(part, dir_fd=folder)
                raise
        return is_kept

    def rename(self, parts: Sequence[str], name: str) -> None:
        """Rename a file or folder within its folder."""
        with opened_folder(self._root, parts[:-1]) as folder:
            os.rename(parts[-1], name, src_dir_fd=folder, dst_dir_fd=folder)

    def make_changeable(self, parts: Sequence[str]) -> None:
        """Make a folder writable for its owner, as far as that is possible."""
        with suppress(OSError), opened_folder(self._root, parts[:-1]) as folder:
            _make_changeable(parts[-1], folder)

    def remove(self, parts: Sequence[str]) -> None:
        """Remove a file, link or folder with all that is in it, as far as that is possible."""
        with suppress(OSError), opened_folder(self._root, parts[:-1]) as folder:
            status = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                _delete(parts[-1], folder)
            else:
                os.unlink(parts[-1], dir_fd=folder)


def _put(part: str, name: str, folder: int) -> None:
    with suppress(IsADirectoryError):
        os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    _delete(name, folder)
    os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)


def _delete(name: str, folder: int) -> None:
    """Delete a folder within an open one, however deep it is, as far as that is possible.

    The folders within it are moved to its top one after the other, so that neither recursion nor
    an open folder for each level is needed.
    """
    _make_changeable(name, folder)
    top = os.open(name, _FOLDER, dir_fd=folder)
    try:
        waiting = _empty(top, top)
        while waiting:
            inner_name = waiting.pop()
            with suppress(OSError):
                inner = os.open(inner_name, _FOLDER, dir_fd=top)
                try:
                    waiting += _empty(inner, top)
                finally:
                    os.close(inner)
                os.rmdir(inner_name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=folder)


def _empty(folder: int, top: int) -> list[str]:
    """Delete what an open folder holds but folders, which move to `top`; return their names."""
    moved = []
    for name in os.listdir(folder):
        with suppress(OSError):
            if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=folder)
                continue
            _make_changeable(name, folder)  # or it cannot be moved, either
            unused = f"removed-{secrets.token_hex(8)}"
            os.rename(name, unused, src_dir_fd=folder, dst_dir_fd=top)
            moved.append(unused)
    return moved


def _make_changeable(name: str, parent: int) -> None:
    """Take a folder's write protection away, which also those of a package cache have."""
    with suppress(OSError):
        opened = os.open(name, _CLOSED, dir_fd=parent)
        try:
            mode = stat.S_IMODE(os.fstat(opened).st_mode)
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                place = f"/proc/self/fd/{opened}"  # follows no link
                os.chmod(place, mode | stat.S_IRWXU)  # noqa: PTH101
        finally:
            os.close(opened)


def _raise_unless_absent(exc: OSError) -> None:
    if exc.errno not in _ABSENT and not isinstance(exc, FileNotFoundError):
        raise exc
