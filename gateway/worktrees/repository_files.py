"""Reads and writes single files in a repository that agents can write, without following a link."""

import os
import secrets
import shutil
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from memory.notes.descriptors import create_file, open_file, opened_folder

_MAX_BYTES: Final = 256 * 1024 * 1024
"""Of a file that is read whole or copied: an index of two million files."""


class RepositoryFiles:
    """The files below one folder, by the parts of their paths.

    A component that is a link or missing raises `OSError`, unless a method says otherwise.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def has_folder(self, parts: Sequence[str]) -> bool:
        """Return whether a folder is there."""
        with suppress(OSError), opened_folder(self._root, parts):
            return True
        return False

    def has_file(self, parts: Sequence[str]) -> bool:
        """Return whether a regular file is there."""
        try:
            os.close(open_file(self._root, parts))
        except OSError:
            return False
        return True

    def names(self, parts: Sequence[str]) -> list[str]:
        """Return the names in a folder, in no order; none if it is missing."""
        try:
            with opened_folder(self._root, parts) as folder:
                return os.listdir(folder)  # noqa: PTH208  a descriptor
        except OSError:
            return []

    def open(self, parts: Sequence[str]) -> BinaryIO:
        """Open a regular file for reading."""
        return os.fdopen(open_file(self._root, parts), "rb")

    def read(self, parts: Sequence[str]) -> bytes | None:
        """Return the content of a regular file; None if there is none, or it is too large."""
        try:
            opened = open_file(self._root, parts)
        except OSError:
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

    def fill(
        self, parts: Sequence[str], fill: Callable[[BinaryIO], bool], mode: int = 0o644
    ) -> bool:
        """Write a file as `write` does, with what `fill` writes; if that returns False, nothing
        changes.
        """
        part = f".{parts[-1]}.{secrets.token_hex(4)}.part"
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
        """Give a file or folder another name in its folder."""
        with opened_folder(self._root, parts[:-1]) as folder:
            os.rename(parts[-1], name, src_dir_fd=folder, dst_dir_fd=folder)

    def remove(self, parts: Sequence[str]) -> None:
        """Remove a file, link or folder with all that is in it, as far as that is possible."""
        with suppress(OSError), opened_folder(self._root, parts[:-1]) as folder:
            status = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                shutil.rmtree(parts[-1], ignore_errors=True, dir_fd=folder)
            else:
                os.unlink(parts[-1], dir_fd=folder)


def _put(part: str, name: str, folder: int) -> None:
    with suppress(IsADirectoryError):
        os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    shutil.rmtree(name, dir_fd=folder)
    os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
