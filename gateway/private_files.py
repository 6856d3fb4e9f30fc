"""The folders of the server's own, which other users have no rights to. Blocks."""

import os
import stat
from pathlib import Path
from typing import Final

from gateway.settings import Settings

_OWNER: Final = stat.S_IRWXU
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def make_directories_blocking(settings: Settings) -> None:
    """Create the data and log directories, for this user alone."""
    for directory in (settings.data_dir, settings.log_dir):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def make_private_blocking(root: Path) -> int:
    """Leave the rights of the owner alone on a folder and all that it holds; return how many
    entries refused.

    Links are not followed. A file that has a name elsewhere too is left as it is.
    """
    refused = 0
    for _, _, names, folder in os.fwalk(root):
        refused += not _restrict(folder)
        for name in names:
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if not _is_open_to_others(status):
                    continue
                opened = os.open(name, _FILE, dir_fd=folder)
            except OSError:
                refused += 1
                continue
            try:
                refused += not _restrict(opened)
            finally:
                os.close(opened)
    return refused


def _is_open_to_others(status: os.stat_result) -> bool:
    is_ours_alone = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
    return is_ours_alone and stat.S_IMODE(status.st_mode) & ~_OWNER != 0


def _restrict(opened: int) -> bool:
    """Change an open file or folder; return False if the system refuses it."""
    mode = stat.S_IMODE(os.fstat(opened).st_mode)
    try:
        if mode & ~_OWNER:
            os.fchmod(opened, mode & _OWNER)
    except OSError:
        return False
    return True
