"""The journal's files: their names, and appending so that no crash spoils what follows.

A file belongs to one turn. A line is written whole or removed again. A torn last line of a crash
gets its newline before the next line, and numbering continues after the last readable line.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.journal.line import MAX_LINE_BYTES, Line, LineFormat

_DATE = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_TURN = r"trn_[A-Za-z0-9_\-]{1,96}"
DATE_DIRECTORY = re.compile(_DATE, re.ASCII)
TURN_ID = re.compile(_TURN, re.ASCII)
LOG_FILE = re.compile(rf"({_DATE})/({_TURN})\.jsonl", re.ASCII)


def log_file_name(turn_id: str, at: datetime) -> str:
    """Return a turn's file relative to the journal's directory: `<UTC date>/<turn_id>.jsonl`.

    Raise `ValueError` if `turn_id` is not shaped like one, so it must not become part of a path.
    """
    if TURN_ID.fullmatch(turn_id) is None:
        raise ValueError("a turn id is `trn_` and up to 96 letters, digits, underscores or hyphens")
    return f"{at.astimezone(UTC).date().isoformat()}/{turn_id}.jsonl"


def parse_line(raw: bytes) -> dict[str, Any] | None:
    """Parse one line; None if it is damaged."""
    try:
        value = json.loads(raw.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def open_for_reading(path: Path) -> int:
    """Open a file for reading, never through a symbolic link at its end."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)


def read_at(descriptor: int, start: int, count: int) -> bytes:
    """Read up to `count` bytes from `start`, fewer only at the file's end."""
    os.lseek(descriptor, start, os.SEEK_SET)
    pieces = []
    while count > 0 and (piece := os.read(descriptor, count)):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def last_lines(descriptor: int) -> Iterator[bytes]:
    """Yield the last lines, latest first: those of the last 64 KiB, then of two longest lines."""
    size = os.fstat(descriptor).st_size
    yielded = 0
    for count in (65_536, 2 * MAX_LINE_BYTES):
        start = max(0, size - count)
        lines = read_at(descriptor, start, size - start).split(b"\n")
        whole = [line for line in (lines[1:] if start else lines) if line.strip()]
        yield from reversed(whole[: len(whole) - yielded])
        yielded = len(whole)


@dataclass(slots=True, eq=False)
class LogFile:
    """One turn's file, as the writer's thread knows it."""

    path: Path
    envelope: Mapping[str, str]
    _size: int = -1
    """After our last write; if the file has another size, its end is read again."""
    _seq: int = 0
    _is_complete: bool = False
    """The file ends with the turn's response."""
    _unwritten: int = 0
    _reported_lost: int = 0
    """Lost lines that a line in the file reports."""

    def write_blocking(
        self, lines: Sequence[Line], line_format: LineFormat
    ) -> tuple[int, OSError | None]:
        """Append lines in order; return how many were lost, and the last error.

        The file and its directories are created if missing (0600 and 0700). After an error only
        `response` lines are tried. A second response, of a turn recovered after a crash, is
        dropped.
        """
        before, fault = self._unwritten, None
        try:
            descriptor = self._open()
        except OSError as exc:
            self._unwritten += len(lines)
            return len(lines), exc
        try:
            for line in lines:
                try:
                    if fault is not None and line.kind != "response":
                        raise fault
                    self._write_line(descriptor, line, line_format)
                except OSError as exc:
                    self._unwritten += 1
                    fault = exc
        finally:
            os.close(descriptor)
        return self._unwritten - before, fault

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        for directory in (self.path.parent.parent, self.path.parent):
            if not directory.is_dir():
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(self.path, flags, 0o600)

    def _write_line(self, descriptor: int, line: Line, line_format: LineFormat) -> None:
        """Append a line, preceded by one about the loss of those before it."""
        if os.fstat(descriptor).st_size != self._size:
            self._recover(descriptor)
        if line.kind == "response" and self._is_complete:
            return
        if lost := line.refused_before + self._unwritten - self._reported_lost:
            fields = {
                "code": "journal_lines_lost",
                "message": f"{lost} of the journal's lines before this one could not be kept.",
                "lost": lost,
            }
            loss = Line(at=line.at, kind="error", fields=fields)
            self._append(descriptor, line_format.encode(loss, self._seq + 1, self.envelope))
            self._seq += 1
            self._reported_lost += lost
        self._append(descriptor, line_format.encode(line, self._seq + 1, self.envelope))
        self._seq += 1

    def _recover(self, descriptor: int) -> None:
        lines = (fields for raw in last_lines(descriptor) if (fields := parse_line(raw)))
        last = next((line for line in lines if isinstance(line.get("seq"), int)), {})
        self._seq, self._is_complete = last.get("seq", 0), last.get("kind") == "response"
        self._size = os.fstat(descriptor).st_size
        if self._size and read_at(descriptor, self._size - 1, 1) != b"\n":
            self._append(descriptor, b"\n")

    def _append(self, descriptor: int, encoded: bytes) -> None:
        """Write all bytes; on failure none of them stays in the file."""
        written = 0
        try:
            while written < len(encoded):
                written += os.write(descriptor, encoded[written:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(descriptor, self._size)
            self._size = -1
            raise
        self._size += written
