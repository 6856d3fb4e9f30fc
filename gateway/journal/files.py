"""The journal's files: their names, and appending to one so that no crash spoils what follows.

A file belongs to one turn. Each line is written whole or taken back; what a crash left torn gets its
newline before the next line, and numbering goes on behind the last line that can be read.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.journal.line import MAX_LINE_BYTES

_DATE = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_TURN = r"trn_[A-Za-z0-9_\-]{1,96}"
DATE_DIRECTORY = re.compile(_DATE, re.ASCII)
TURN_ID = re.compile(_TURN, re.ASCII)
FILE_NAME = re.compile(rf"({_TURN})\.jsonl", re.ASCII)
LOG_FILE = re.compile(rf"({_DATE})/({_TURN})\.jsonl", re.ASCII)

_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)
_FIRST_LOOK_BYTES = 65_536


def log_file_name(turn_id: str, at: datetime) -> str:
    """Name a turn's file, relative to the journal's directory: `<UTC date>/<turn_id>.jsonl`.

    Raises:
        ValueError: `turn_id` has not the shape of one, so it must not become part of a path.
    """
    if TURN_ID.fullmatch(turn_id) is None:
        raise ValueError("a turn id is `trn_` and up to 96 letters, digits, underscores or hyphens")
    return f"{at.astimezone(UTC).date().isoformat()}/{turn_id}.jsonl"


def parse_line(raw: bytes) -> dict[str, Any] | None:
    """Read one line; None when it is damaged."""
    try:
        value = json.loads(raw.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def open_for_reading(path: Path) -> int:
    """Open a regular file, never through a symbolic link at its end; blocking.

    Raises:
        OSError: there is no such regular file, or it cannot be read.
    """
    return os.open(path, os.O_RDONLY | _NO_FOLLOW | _NO_WAIT | _BINARY)


def last_lines(descriptor: int, size: int) -> Iterator[bytes]:
    """Give a file's lines from the last one back, as many as `MAX_LINE_BYTES` hold; blocking."""
    look = _FIRST_LOOK_BYTES
    given = 0
    while True:
        start = max(0, size - look)
        lines = read_at(descriptor, start, size - start).split(b"\n")
        whole = [one for one in (lines[1:] if start else lines) if one.strip()]
        yield from reversed(whole[: len(whole) - given])
        given = len(whole)
        if start == 0 or look > 2 * MAX_LINE_BYTES:
            return
        look *= 4


def read_at(descriptor: int, start: int, count: int) -> bytes:
    """Read up to `count` bytes from `start`, fewer only at the file's end; blocking."""
    os.lseek(descriptor, start, os.SEEK_SET)
    pieces = []
    while count > 0 and (piece := os.read(descriptor, count)):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


@dataclass(slots=True)
class FilePlace:
    """Where a turn's file ended after our last write; anything else means: look again."""

    size: int = -1
    seq: int = 0


class LogFile:
    """A turn's file, open for appending. Blocking; for one thread."""

    def __init__(self, descriptor: int, place: FilePlace) -> None:
        self._descriptor = descriptor
        self._place = place

    def next_seq(self) -> int:
        """Give the number that the next line must carry; ends a torn line before it.

        Raises:
            OSError: the file cannot be read, or there is no room for a newline.
        """
        size = os.fstat(self._descriptor).st_size
        if size != self._place.size:
            self._recover(size)
        return self._place.seq + 1

    def append(self, encoded: bytes) -> None:
        """Write one line, numbered as `next_seq` said; on failure nothing of it stays in the file.

        Raises:
            OSError: the disk did not take it.
        """
        self._write_whole(encoded)
        self._place.seq += 1

    def _recover(self, size: int) -> None:
        self._place.seq = _last_seq(self._descriptor, size)
        self._place.size = size
        if size and read_at(self._descriptor, size - 1, 1) != b"\n":
            self._write_whole(b"\n")

    def _write_whole(self, encoded: bytes) -> None:
        written = 0
        try:
            while written < len(encoded):
                written += os.write(self._descriptor, encoded[written:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._place.size)
            self._place.size = -1
            raise
        self._place.size += written


def _last_seq(descriptor: int, size: int) -> int:
    for raw in last_lines(descriptor, size):
        fields = parse_line(raw)
        if fields is not None and isinstance(fields.get("seq"), int):
            return int(fields["seq"])
    return 0


@contextmanager
def open_for_appending(directory: Path, log_file: str, place: FilePlace) -> Iterator[LogFile]:
    """Open a turn's file, made with its directories if missing (0600 and 0700); blocking.

    Raises:
        OSError: it cannot be made, opened or read.
    """
    path = directory / log_file
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | _NO_FOLLOW | _NO_WAIT | _BINARY
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileNotFoundError:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, flags, 0o600)
    try:
        yield LogFile(descriptor, place)
    finally:
        os.close(descriptor)
