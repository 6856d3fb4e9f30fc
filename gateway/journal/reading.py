"""Reads the journal back: what there is, newest first, and one file line by line.

All of it blocks; run it in a thread. Files are found by listing directories, and a name from outside
is only ever compared with what was listed. Symbolic links are not followed. Whose a log is, the
caller decides.
"""

import os
import re
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import nlargest
from pathlib import Path
from typing import Any

from gateway.journal.files import (
    DATE_DIRECTORY,
    FILE_NAME,
    LOG_FILE,
    TURN_ID,
    last_lines,
    open_for_reading,
    parse_line,
)
from gateway.jsonsafe import json_text
from memory.clock import from_rfc3339, rfc3339

MAX_LIMIT = 200
MAX_READ_BYTES = 16 * 1024 * 1024
"""A longer line is none of ours; it is read in pieces, each of them damaged."""
_HEAD_BYTES = 65_536
_ENVELOPE = re.compile(
    rb'^\{"ts":"(?P<ts>[0-9T:.\-]{23}Z)","seq":\d+,"conversation_id":"(?P<conversation>[\w\-]{1,128})",',
    re.MULTILINE | re.ASCII,
)
"""How each line begins. Matched instead of parsed: a first line may be long, and there are many files."""
_CURSOR = re.compile(
    rf"({DATE_DIRECTORY.pattern})\|([0-9T:.\-]{{23}}Z)\|({TURN_ID.pattern})", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One log, as a list shows it."""

    log_file: str
    conversation_id: str | None
    """None when no line of the file can be read."""
    turn_id: str
    started_at: datetime
    size_bytes: int
    outcome: str | None = None
    """None while the turn runs, and when its response was never written."""


@dataclass(frozen=True, slots=True)
class LogPage:
    """Some logs, newest first, and where the next ones begin; None: there are no more."""

    entries: list[LogEntry]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a log."""

    number: int
    """From 1, damaged lines counted."""
    raw: bytes
    fields: dict[str, Any] | None
    """None: the line is damaged."""

    @property
    def text(self) -> str:
        """The line as valid JSON; a damaged one is replaced by an `error` that says so."""
        if self.fields is not None:
            return self.raw.decode()
        return json_text({"kind": "error", "code": "damaged_line", "line": self.number})


@dataclass(frozen=True, slots=True)
class _Found:
    """A log of which only the head was read."""

    day: str
    started: str
    turn_id: str
    conversation_id: str | None
    size_bytes: int

    @property
    def key(self) -> tuple[str, str, str]:
        """Where it stands in the order of time."""
        return self.day, self.started, self.turn_id

    @property
    def log_file(self) -> str:
        """Its name, relative to the journal's directory."""
        return f"{self.day}/{self.turn_id}.jsonl"


def list_logs(
    directory: Path,
    *,
    limit: int = 50,
    cursor: str | None = None,
    conversation_id: str | None = None,
    among: Container[str] | None = None,
) -> LogPage:
    """List logs, newest first, at most `limit` (1 to `MAX_LIMIT`); blocking.

    `conversation_id` keeps those of one conversation, `among` those of some. A cursor stays good
    while logs are added and deleted.

    Raises:
        ValueError: the cursor is not one that was given out.
    """
    limit = max(1, min(limit, MAX_LIMIT))
    before = _read_cursor(cursor)
    kept: list[_Found] = []
    for day in list_days(directory):
        if before is not None and day > before[0]:
            continue
        wanted = (
            found
            for found in _find(directory, day)
            if (before is None or found.key < before)
            and (conversation_id is None or found.conversation_id == conversation_id)
            and (among is None or (found.conversation_id or "") in among)
        )
        kept += nlargest(limit + 1 - len(kept), wanted, key=lambda one: one.key)
        if len(kept) > limit:
            break
    page = kept[:limit]
    next_cursor = "|".join(page[-1].key) if len(kept) > limit else None
    return LogPage([_describe(directory, one) for one in page], next_cursor)


def read_log(directory: Path, log_file: str) -> Iterator[LogLine] | None:
    """Give a log's lines as they are read, or None when there is no log of that name; blocking.

    The file is open while the iterator is at work, so that one which nobody begins leaves nothing
    open. A last line that is still being written counts as damaged.
    """
    if LOG_FILE.fullmatch(log_file) is None or not is_listed(directory, log_file):
        return None
    path = directory / log_file
    try:
        os.close(open_for_reading(path))
    except OSError:
        return None
    return _read_lines(path)


def find_log(directory: Path, turn_id: str) -> str | None:
    """Give the name of a turn's log, the newest if there are several; blocking."""
    for day in list_days(directory):
        log_file = f"{day}/{turn_id}.jsonl"
        if is_listed(directory, log_file):
            return log_file
    return None


def is_listed(directory: Path, log_file: str) -> bool:
    """Say whether a list of all logs would hold this name; blocking."""
    day, _, name = log_file.partition("/")
    return day in list_days(directory) and any(
        one.name == name for one in list_files(directory, day)
    )


def list_days(directory: Path) -> list[str]:
    """Give the days that have a directory, newest first; blocking."""
    try:
        with os.scandir(directory) as found:
            days = [
                one.name
                for one in found
                if DATE_DIRECTORY.fullmatch(one.name) and one.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []
    return sorted(days, reverse=True)


def list_files(directory: Path, day: str) -> Iterator[os.DirEntry[str]]:
    """Give the logs of one of `list_days`, in no order; blocking."""
    try:
        with os.scandir(directory / day) as found:
            for one in found:
                if FILE_NAME.fullmatch(one.name) and one.is_file(follow_symlinks=False):
                    yield one
    except OSError:
        return


def read_head(path: Path) -> tuple[str | None, str | None]:
    """Give the time and the conversation of a log's first whole line, None for each; blocking."""
    try:
        with os.fdopen(open_for_reading(path), "rb", buffering=0) as file:
            head = file.read(_HEAD_BYTES) or b""
    except OSError:
        return None, None
    match = _ENVELOPE.search(head)
    if match is None or not _is_moment(match["ts"].decode()):
        return None, None
    return match["ts"].decode(), match["conversation"].decode()


def _is_moment(text: str) -> bool:
    try:
        return from_rfc3339(text).tzinfo is not None
    except ValueError:
        return False


def _find(directory: Path, day: str) -> Iterator[_Found]:
    for one in list_files(directory, day):
        started, conversation_id = read_head(Path(one.path))
        with suppress(OSError):
            stat = one.stat(follow_symlinks=False)
            changed = rfc3339(datetime.fromtimestamp(stat.st_mtime, UTC))
            turn_id = one.name.removesuffix(".jsonl")
            yield _Found(day, started or changed, turn_id, conversation_id, stat.st_size)


def _describe(directory: Path, found: _Found) -> LogEntry:
    return LogEntry(
        log_file=found.log_file,
        conversation_id=found.conversation_id,
        turn_id=found.turn_id,
        started_at=from_rfc3339(found.started),
        size_bytes=found.size_bytes,
        outcome=_read_outcome(directory / found.log_file),
    )


def has_response(directory: Path, log_file: str) -> bool:
    """Say whether a log has come to its last line, the turn's response; blocking."""
    return _read_outcome(directory / log_file) is not None


def _read_outcome(path: Path) -> str | None:
    try:
        with os.fdopen(open_for_reading(path), "rb", buffering=0) as file:
            lines = last_lines(file.fileno(), os.fstat(file.fileno()).st_size)
            last = parse_line(next(lines, b"")) or {}
    except OSError:
        return None
    outcome = last.get("outcome") if last.get("kind") == "response" else None
    return outcome if isinstance(outcome, str) else None


def _read_lines(path: Path) -> Iterator[LogLine]:
    with os.fdopen(open_for_reading(path), "rb") as file:
        number = 0
        while raw := file.readline(MAX_READ_BYTES):
            number += 1
            line = raw.rstrip(b"\r\n")
            yield LogLine(number, line, parse_line(line))


def _read_cursor(cursor: str | None) -> tuple[str, str, str] | None:
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise ValueError("the cursor is not one that this list gave out")
    return match[1], match[2], match[3]
