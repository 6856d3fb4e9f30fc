"""Follows the journal as it grows: new lines of all files, new files and new days included."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.journal.files import open_for_reading, parse_line, read_at
from gateway.journal.reading import LogLine, list_days, list_files, read_head

_MAX_DAYS = 3
"""Days looked at: a turn that began before midnight still writes into its own day's directory."""
_MAX_STEP_BYTES = 1024 * 1024


@dataclass(slots=True)
class _Tail:
    """How far one file was read."""

    offset: int = 0
    number: int = 0
    rest: bytes = b""
    conversation_id: str | None = None


class Follower:
    """Gives new lines at each look; what was there before the first look is passed over. Blocking."""

    def __init__(self, directory: Path, *, conversation_id: str | None = None) -> None:
        self._directory = directory
        self._conversation_id = conversation_id
        self._tails: dict[str, _Tail] = {}
        for log_file, size in self._sizes().items():
            self._tails[log_file] = _Tail(offset=size)

    def look(self) -> Iterator[tuple[str, LogLine]]:
        """Give what was written since the last look, each file's lines in order, with its name."""
        sizes = self._sizes()
        self._tails = {name: tail for name, tail in self._tails.items() if name in sizes}
        for log_file, size in sorted(sizes.items()):
            tail = self._tails.setdefault(log_file, _Tail())
            if size < tail.offset:
                self._tails[log_file] = tail = _Tail(conversation_id=tail.conversation_id)
            if size > tail.offset and self._is_wanted(log_file, tail):
                yield from ((log_file, line) for line in self._read(log_file, tail))

    def _sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for day in list_days(self._directory)[:_MAX_DAYS]:
            for one in list_files(self._directory, day):
                try:
                    sizes[f"{day}/{one.name}"] = one.stat(follow_symlinks=False).st_size
                except OSError:
                    continue
        return sizes

    def _is_wanted(self, log_file: str, tail: _Tail) -> bool:
        if self._conversation_id is None:
            return True
        if tail.conversation_id is None:
            tail.conversation_id = read_head(self._directory / log_file)[1]
        return tail.conversation_id == self._conversation_id

    def _read(self, log_file: str, tail: _Tail) -> Iterator[LogLine]:
        """Give the whole lines behind what was read; the rest of a line waits for its end."""
        try:
            descriptor = open_for_reading(self._directory / log_file)
        except OSError:
            return
        try:
            while piece := read_at(descriptor, tail.offset, _MAX_STEP_BYTES):
                tail.offset += len(piece)
                *whole, tail.rest = (tail.rest + piece).split(b"\n")
                for raw in whole:
                    tail.number += 1
                    if raw:
                        yield LogLine(tail.number, raw, parse_line(raw))
        finally:
            os.close(descriptor)
