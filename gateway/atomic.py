"""Replace small files as a whole."""

import os
from pathlib import Path


def write_atomically_blocking(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Replace a file as a whole, also after a crash; a link in its place is
    replaced, not followed.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)  # can only be of a process that is gone
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(part, flags, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
