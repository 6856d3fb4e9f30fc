"""Lines on their way to the disk. What happens here happens in the writer's thread."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gateway.journal.files import FilePlace, LogFile, open_for_appending
from gateway.journal.line import JournalKind, Line, LineForm, encode_line

RESERVED_KINDS: Final[frozenset[JournalKind]] = frozenset({"response"})
"""Kinds that may use the queue's reserve, and are tried on a disk that has just refused a line."""


@dataclass(slots=True, eq=False)
class TurnFile:
    """A turn's file as the writer's thread knows it."""

    log_file: str
    envelope: Mapping[str, str]
    settle: Callable[[int, int], None]
    """Told on the event loop: so many lines are done with, so many of them were lost."""
    place: FilePlace = field(default_factory=FilePlace)
    refused_by_disk: int = 0
    told_lost: int = 0
    """Lost lines that a line in the file tells of."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line and where it belongs."""

    file: TurnFile
    line: Line


@dataclass(slots=True, eq=False)
class Batch:
    """Some lines, and what became of them once they are written."""

    entries: list[Entry]
    size: int
    lost: Counter[TurnFile] = field(default_factory=Counter)
    fault: Exception | None = None
    """Why a line was refused, if one was."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _done: bool = False

    def write_blocking(self, directory: Path, form: LineForm) -> None:
        """Write the lines, each turn's in order; a second call waits for the first. Never raises."""
        with self._lock:
            if self._done:
                return
            by_file: dict[TurnFile, list[Line]] = {}
            for entry in self.entries:
                by_file.setdefault(entry.file, []).append(entry.line)
            for file, lines in by_file.items():
                self._write_file(directory, form, file, lines)
            self._done = True

    def count_by_file(self) -> Counter[TurnFile]:
        """Count the lines of each turn."""
        return Counter(entry.file for entry in self.entries)

    def _write_file(
        self, directory: Path, form: LineForm, file: TurnFile, lines: list[Line]
    ) -> None:
        written = 0
        try:
            with open_for_appending(directory, file.log_file, file.place) as opened:
                for index, line in enumerate(lines):
                    refused = index - written
                    if not refused or line.kind in RESERVED_KINDS:
                        written += self._write_line(opened, form, file, line, refused=refused)
        except Exception as exc:  # noqa: BLE001  the writer outlives any disk and any value
            self.fault = exc
        file.refused_by_disk += len(lines) - written
        self.lost[file] = len(lines) - written

    def _write_line(
        self, opened: LogFile, form: LineForm, file: TurnFile, line: Line, *, refused: int
    ) -> bool:
        """Write a line, behind one about the loss of those before it; False: the disk refused."""
        lost = line.lost_before + file.refused_by_disk + refused
        try:
            if lost > file.told_lost:
                note = _note_loss(line, lost - file.told_lost)
                opened.append(encode_line(note, opened.next_seq(), file.envelope, form))
                file.told_lost = lost
            opened.append(encode_line(line, opened.next_seq(), file.envelope, form))
        except OSError as exc:
            self.fault = exc
            return False
        return True


def _note_loss(line: Line, lost: int) -> Line:
    fields = {
        "code": "journal_lines_lost",
        "message": f"{lost} of the journal's lines before this one could not be kept.",
        "lost": lost,
    }
    return Line(at=line.at, kind="error", fields=fields)
