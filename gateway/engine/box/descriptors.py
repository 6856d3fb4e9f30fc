"""Opens what a box is made of without following links, and files that are only in memory."""

import ctypes
import os
import struct
from pathlib import Path

_OPENAT2 = 437  # the same on every architecture
_RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 0x04, 0x08  # linux/openat2.h

_libc = ctypes.CDLL(None, use_errno=True)


def open_below_blocking(root: int, path: str) -> int:
    """Return a descriptor of what stands at a path below a folder, for mounting it.

    Raise `OSError` if there is nothing, or a link on the way or at the end.
    """
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_NO_SYMLINKS | _RESOLVE_BENEATH)
    found = int(_libc.syscall(_OPENAT2, root, os.fsencode(path), how, len(how)))
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return found


def open_folder_blocking(path: Path | str) -> int:
    """Return a descriptor of a folder that is no link."""
    return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def memory_file(content: bytes) -> int:
    """Return a descriptor of a file in memory, at its start."""
    descriptor = os.memfd_create("box", os.MFD_CLOEXEC)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
