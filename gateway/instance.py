"""One server per data directory: a lock that ends with its process."""

import contextlib
import fcntl
import os
import socket
from pathlib import Path
from time import sleep
from typing import TextIO

import psutil

from gateway.errors import StartError


class InstanceLock:
    """Locks an existing data directory for this process, until `close`.

    Raise `StartError` if the directory cannot be written.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "server.lock"
        self._directory: int | None = None
        try:
            self._directory = os.open(data_dir, os.O_RDONLY)
            self._file = self._path.open("a+", encoding="utf-8")
        except OSError as exc:
            _close(self._directory)
            raise StartError(
                f"The lock in the data directory cannot be opened ({exc.strerror}); "
                "set CANDOR_DATA_DIR to a directory that can be written."
            ) from exc

    def take(self) -> None:
        """Take the lock, waiting a moment for processes that only look at it; blocking.

        Raise `StartError` if another server holds it; the sentence names that server.
        """
        if not self._is_taken():
            self._file.seek(0)
            holder = _name_of(self._file)
            self.close()
            raise StartError(
                f"Another Candor server ({holder}) uses this data directory; stop it, or give "
                "this one its own with CANDOR_DATA_DIR."
            )
        with contextlib.suppress(OSError):  # a full disk: locked all the same, only without a name
            self._file.truncate(0)
            self._file.write(f"process {os.getpid()} on {socket.gethostname()}")
            self._file.flush()

    def _is_taken(self) -> bool:
        for _ in range(_TRIES):
            # the file may have been removed
            if (
                self._directory is not None
                and _lock(self._file.fileno())
                and _lock(self._directory)
            ):
                return True
            sleep(_BETWEEN_TRIES_S)
        return False

    def close(self) -> None:
        """Release the directory. Idempotent."""
        self._file.close()
        _close(self._directory)
        self._directory = None


def _close(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)


_HOLDER_CHARS = 300
_TRIES = 20
_BETWEEN_TRIES_S = 0.01
"""A look at the lock takes much less than all tries together."""


def holder_of(data_dir: Path) -> str | None:
    """Return the holder of a data directory as the lock names it, or None. Does not lock."""
    try:
        file = (data_dir / "server.lock").open(encoding="utf-8", errors="replace")
    except OSError:  # missing or unreadable: a start reports which
        return None
    with file:
        return None if _lock(file.fileno(), shared=True) else _name_of(file)


def _name_of(file: TextIO) -> str:
    return file.read(_HOLDER_CHARS).strip() or "another process"


def _lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock a file, exclusively or shared; return False if that fails. Closing it unlocks."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def machine_memory_bytes() -> int:
    """Return the machine's memory."""
    return int(psutil.virtual_memory().total)
