"""Whether the journal could be written now, said without naming a place on the server."""

import errno
import os
import tempfile
from pathlib import Path

PROBE_TIMEOUT_S = 2.0
TOO_SLOW = "The journal's disk does not answer."

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "the permission is missing",
    errno.EPERM: "the permission is missing",
    errno.EFBIG: "a file would be too large",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "too many files are open",
    errno.ENOTDIR: "its directory is no directory",
    errno.EEXIST: "its directory is no directory",
}
_PROBE = b"\n" * 4096
"""A whole block: a full disk may still take a byte into one that is begun."""


def name_fault(fault: Exception | None) -> str:
    """Give the reason of a failed write in a few words, without a path."""
    number = fault.errno if isinstance(fault, OSError) else None
    if number is None:
        return "of a fault inside"
    return _REASONS.get(number, os.strerror(number).lower())


def probe_blocking(directory: Path) -> str | None:
    """Write a nameless file and drop it again; None when that went well, else a sentence."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            if file.write(_PROBE) < len(_PROBE):
                return "The journal cannot be written: the disk is full."
    except OSError as exc:
        return f"The journal cannot be written: {name_fault(exc)}."
    return None
