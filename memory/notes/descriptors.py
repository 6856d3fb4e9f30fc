"""Open what lies below a folder without following a link, so that nothing can be swapped in on the
way.

Each component is opened relative to the one before. Only the path of the root itself may contain
links.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened_folder(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """Open the folder `parts` below `root`; `make` creates what is missing.

    Raise `OSError` if a component is missing, a link or no folder.
    """
    opened = os.open(root, _DIRECTORY)
    try:
        for name in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=opened)
            below = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=opened)
            os.close(opened)
            opened = below
        yield opened
    finally:
        os.close(opened)


def open_file(root: Path, parts: Sequence[str]) -> int:
    """Open the regular file `parts` below `root` for reading; the caller closes it.

    Raise `OSError` if it is missing, a link or no regular file.
    """
    *folders, name = parts
    with opened_folder(root, folders) as folder:
        opened = os.open(name, _FILE, dir_fd=folder)
    if stat.S_ISREG(os.fstat(opened).st_mode):
        return opened
    os.close(opened)
    raise FileNotFoundError(name)


def create_file(name: str, folder: int) -> int:
    """Create an empty file in an open folder for writing; the caller closes it.

    Raise `FileExistsError` if the name is taken, if only by a link.
    """
    return os.open(name, _NEW, 0o644, dir_fd=folder)
