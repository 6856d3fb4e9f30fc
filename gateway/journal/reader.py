"""Read the journal: the list of logs, newest first, and one log line by line.

Everything here blocks; run it in a thread. Names from outside must have the exact form of a log
file, and symbolic links are not followed. The caller decides who may read which log.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from heapq import nlargest
from pathlib import Path
from typing import Any

from gateway.journal.files import (
    DATE_DIRECTORY,
    LOG_FILE,
    TURN_ID,
    last_lines,
    open_for_reading,
    parse_line,
)
from gateway.jsonsafe import json_text
from memory.clock import from_rfc3339, rfc3339

MAX_LIMIT = 200
_MAX_READ_BYTES = 16 * 1024 * 1024
"""A longer line is not ours; it is read in pieces, each of them damaged."""
_HEAD_BYTES = 65_536
_ENVELOPE = re.compile(
    rb'^\{"ts":"([0-9T:.\-]{23}Z)","seq":\d+,"conversation_id":"([\w\-]{1,128})",',
    re.MULTILINE | re.ASCII,
)
"""How each line begins. Matched instead of parsed: a first line may be long, and there are many
files."""
_CURSOR = re.compile(
    rf"({DATE_DIRECTORY.pattern})\|([0-9T:.\-]{{23}}Z)\|({TURN_ID.pattern})", re.ASCII
)
_Place = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One log, as a list shows it."""

    log_file: str
    conversation_id: str | None
    """None if no line of the file can be read."""
    turn_id: str
    started_at: datetime
    size_bytes: int
    outcome: str | None = None
    """None while the turn runs, and if its response was never written."""


@dataclass(frozen=True, slots=True)
class LogPage:
    """Some logs, newest first, and the cursor of the next page; None: there is no next page."""

    entries: list[LogEntry]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a log."""

    number: int
    """From 1, damaged lines included."""
    raw: bytes
    fields: dict[str, Any] | None
    """None if the line is damaged."""

    @property
    def text(self) -> str:
        """The line as valid JSON; a damaged one is replaced by an `error` that says so."""
        if self.fields is not None:
            return self.raw.decode()
        return json_text({"kind": "error", "code": "damaged_line", "line": self.number})


def list_logs(
    directory: Path,
    *,
    limit: int = 50,
    cursor: str | None = None,
    conversation_id: str | None = None,
) -> LogPage:
    """List all logs or those of one conversation, newest first, at most `limit` (1 to `MAX_LIMIT`).

    A cursor stays valid while logs are added and deleted. Raise `ValueError` if the cursor was not
    returned by this function.
    """
    limit = max(1, min(limit, MAX_LIMIT))
    before = _parse_cursor(cursor)
    kept: list[LogEntry] = []
    for day in list_days(directory):
        if before is not None and day > before[0]:
            continue
        wanted = (
            entry
            for file in list_files(directory, day)
            if (entry := _describe(day, file)) is not None
            and (before is None or _place(entry) < before)
            and conversation_id in {None, entry.conversation_id}
        )
        kept += nlargest(limit + 1 - len(kept), wanted, key=_place)
        if len(kept) > limit:
            break
    page = [replace(entry, outcome=_outcome(directory / entry.log_file)) for entry in kept[:limit]]
    return LogPage(page, "|".join(_place(page[-1])) if len(kept) > limit else None)


def read_log(directory: Path, log_file: str) -> Iterator[LogLine] | None:
    """Return an iterator over a log's lines, or None if there is no log of that name.

    The file is opened by the first step of the iterator. A last line that is still being written
    counts as damaged.
    """
    path = directory / log_file
    if not _is_log(directory, log_file) or not os.access(path, os.R_OK):
        return None
    return _read_lines(path)


def find_log(directory: Path, turn_id: str) -> str | None:
    """Return the name of a turn's log, the newest if there are several."""
    names = (f"{day}/{turn_id}.jsonl" for day in list_days(directory))
    return next((name for name in names if _is_log(directory, name)), None)


def list_days(directory: Path) -> list[str]:
    """List the days that have a directory, newest first."""
    return sorted(
        (
            entry.name
            for entry in _scan(directory)
            if DATE_DIRECTORY.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
        ),
        reverse=True,
    )


def list_files(directory: Path, day: str) -> Iterator[os.DirEntry[str]]:
    """Yield the logs of one of `list_days`, in no order."""
    for entry in _scan(directory / day):
        if LOG_FILE.fullmatch(f"{day}/{entry.name}") and entry.is_file(follow_symlinks=False):
            yield entry


def read_head(path: Path) -> tuple[str | None, str | None]:
    """Return the time and the conversation of a log's first readable line, None for each."""
    try:
        with os.fdopen(open_for_reading(path), "rb", buffering=0) as file:
            match = _ENVELOPE.search(file.read(_HEAD_BYTES) or b"")
        if match is None or from_rfc3339(match[1].decode()).tzinfo is None:
            return None, None
    except (OSError, ValueError):
        return None, None
    return match[1].decode(), match[2].decode()


def _scan(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []


def _is_log(directory: Path, log_file: str) -> bool:
    if LOG_FILE.fullmatch(log_file) is None:
        return False
    path = directory / log_file
    return path.is_file() and not path.is_symlink() and not path.parent.is_symlink()


def _describe(day: str, file: os.DirEntry[str]) -> LogEntry | None:
    started, conversation_id = read_head(Path(file.path))
    try:
        stat = file.stat(follow_symlinks=False)
    except OSError:
        return None
    changed_at = datetime.fromtimestamp(stat.st_mtime, UTC)
    return LogEntry(
        log_file=f"{day}/{file.name}",
        conversation_id=conversation_id,
        turn_id=file.name.removesuffix(".jsonl"),
        started_at=from_rfc3339(started or rfc3339(changed_at)),
        size_bytes=stat.st_size,
    )


def _place(entry: LogEntry) -> _Place:
    return entry.log_file.partition("/")[0], rfc3339(entry.started_at), entry.turn_id


def _outcome(path: Path) -> str | None:
    try:
        with os.fdopen(open_for_reading(path), "rb", buffering=0) as file:
            last = parse_line(next(last_lines(file.fileno()), b"")) or {}
    except OSError:
        return None
    outcome = last.get("outcome") if last.get("kind") == "response" else None
    return outcome if isinstance(outcome, str) else None


def _read_lines(path: Path) -> Iterator[LogLine]:
    with os.fdopen(open_for_reading(path), "rb") as file:
        number = 0
        while raw := file.readline(_MAX_READ_BYTES):
            number += 1
            line = raw.rstrip(b"\r\n")
            yield LogLine(number, line, parse_line(line))


def _parse_cursor(cursor: str | None) -> _Place | None:
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise ValueError("the cursor was not returned by this list")
    return match[1], match[2], match[3]
