"""One server per data directory: a lock that ends with its process."""

import contextlib
import fcntl
import os
import socket
from pathlib import Path
from time import sleep
from typing import TextIO

from gateway.atomic import write_atomically_blocking
from gateway.errors import StartError
from gateway.ids import NodeId
from memory.items.ids import opaque_id


class InstanceLock:
    """Locks an existing data directory for this process, until `close`."""

    def __init__(self, data_dir: Path) -> None:
        """Take the lock, waiting a moment for processes that only look at it; blocking.

        Raise `StartError` if the directory cannot be written, or another server holds the lock; the
        sentence names that server.
        """
        with contextlib.ExitStack() as opened:
            try:
                directory = os.open(data_dir, os.O_RDONLY)
                opened.callback(os.close, directory)
                path = data_dir / "server.lock"
                file = opened.enter_context(_open_private(path))
                os.fchmod(file.fileno(), _MODE)  # an earlier release made it readable for all
            except OSError as exc:
                raise StartError(
                    f"The lock in the data directory cannot be opened ({exc.strerror}); "
                    "set CANDOR_DATA_DIR to a directory that can be written."
                ) from exc
            if not _takes(file.fileno(), directory):
                file.seek(0)
                raise StartError(
                    f"Another Candor server ({_name_of(file)}) uses this data directory; stop it, "
                    "or give this one its own with CANDOR_DATA_DIR."
                )
            with contextlib.suppress(OSError):  # a full disk: locked all the same, without a name
                file.truncate(0)
                # what a buffer keeps would be written when the file is closed, and fail again
                os.write(file.fileno(), f"process {os.getpid()} on {socket.gethostname()}".encode())
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Release the directory. Idempotent."""
        self._opened.close()


def _open_private(path: Path) -> TextIO:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    return os.fdopen(os.open(path, flags, _MODE), "a+", encoding="utf-8")


def _takes(*descriptors: int) -> bool:
    """Lock the file and the directory, since the file may have been removed."""
    for _ in range(_TRIES):
        if all(map(_lock, descriptors)):
            return True
        sleep(_BETWEEN_TRIES_S)
    return False


def node_of_blocking(data_dir: Path, engine: str) -> NodeId:
    """Return the id of a data directory's server among those that may use its database.

    A SQLite file has one. For another engine a directory without an id gets one; the caller holds
    the directory's lock. Raise `StartError` if it cannot be read or written.
    """
    if engine == "sqlite":
        return _ONLY
    path = data_dir / "node"
    try:
        known = path.read_text("utf-8").strip() if path.exists() else ""
        if not known:
            known = opaque_id("nod")
            write_atomically_blocking(path, known.encode(), mode=_MODE)
    except OSError as exc:
        raise StartError(
            f"The file node in the data directory cannot be read or made ({exc.strerror}); "
            "set CANDOR_DATA_DIR to a directory that can be written."
        ) from exc
    return NodeId(known)


_ONLY = NodeId("local")
"""The one server of a SQLite file."""
_HOLDER_CHARS = 300
_MODE = 0o600
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
