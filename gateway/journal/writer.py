"""Write the journal: turns add lines on the event loop, one thread writes them in batches.

A turn never waits for the disk and never fails because of it. Lines that cannot be kept, because
the queue is full or the disk takes nothing, are counted. The next line that can be written is
preceded by one that reports the loss.
"""

import errno
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskStatus

from gateway.journal.files import LogFile, log_file_name
from gateway.journal.line import JournalKind, Line, LineFormat
from gateway.jsonsafe import estimate_chars
from gateway.observability.masking import Mask
from memory.clock import Now, utc_now

MAX_WAITING_LINES = 10_000
MAX_WAITING_BYTES = 64 * 1024 * 1024
LINGER_S = 0.1
"""Lines that arrive within this time are written together, unless a turn waits for them.

Rendering and masking need the interpreter; the first words of a turn must not wait for that."""
CLOSE_TIMEOUT_S = 5.0
DRAIN_TIMEOUT_S = 5.0
PROBE_TIMEOUT_S = 2.0
TOO_SLOW = "The journal's disk does not answer."
_MAX_FORMATS = 32
"""Ways to show texts, one a workspace, whose lines' repeated strings are remembered."""
_PROBE = b"\n" * 4096
"""A whole block: a full disk may still take a byte into a block that is in use."""
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "the permission is missing",
    errno.EPERM: "the permission is missing",
    errno.EFBIG: "a file would be too large",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "too many files are open",
    errno.EEXIST: "its directory is no directory",
    errno.ENOTDIR: "its directory is no directory",
}

log = logging.getLogger(__name__)


class TurnJournal:
    """One turn's file. Made by `Journal.open`; for the event loop alone."""

    def __init__(
        self, journal: "Journal", file: LogFile, log_file: str, line_format: LineFormat
    ) -> None:
        self.file = file
        self.line_format = line_format
        self.log_file = log_file
        """`<YYYY-MM-DD>/<turn_id>.jsonl`, the date in UTC; relative to the journal's directory."""
        self.lost = 0
        """Lines of this turn that could not be kept."""
        self._journal = journal
        self._refused = 0
        self._pending = 0
        self._settled = anyio.Event()
        self._closed = False

    def write(
        self, kind: JournalKind, masked: AbstractSet[str] = frozenset(), /, **fields: Any
    ) -> None:
        """Add a line. Never blocks, never raises.

        Texts in `masked` were masked before and are written as they are. The values are read later,
        in another thread: they must not be changed after this call. If the queue is full the line
        is dropped and counted in `lost`, unless it is a `response`. After `close` every line is
        dropped.
        """
        line = Line(
            at=self._journal.now(),
            kind=kind,
            fields=fields,
            masked=masked,
            size=estimate_chars(fields),
            refused_before=self._refused,
        )
        if not self._closed and self._journal.enqueue(self, line):
            self._pending += 1
            return
        self._refused += 1
        self.lost += 1
        self._journal.on_lost(1)

    async def flush(self, *, within_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Wait until every line so far is with the operating system, `within_s` at most.

        Return False if that took longer, or if a line of this turn was lost.
        """
        with anyio.move_on_after(within_s):
            while self._pending:
                self._journal.hurry()
                await self._settled.wait()
        return self._pending == 0 and self.lost == 0

    async def close(self, *, within_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Take no more lines and wait as `flush` does; idempotent.

        Return False if a line was lost or is not written yet: the journal still tries.
        """
        self._closed = True
        return await self.flush(within_s=within_s)

    def settle(self, done: int, lost: int) -> None:
        """Note that `done` lines left the queue, `lost` of them unwritten."""
        self._pending -= done
        self.lost += lost
        if self._pending == 0:
            self._settled.set()
            self._settled = anyio.Event()


class Journal:
    """The journal of all turns below one directory. For one event loop.

    At most `MAX_WAITING_LINES` lines and about `MAX_WAITING_BYTES` wait for the disk, and each
    turn's response. `on_lost` is called with the number of lost lines, on the event loop; it must
    not raise.
    """

    def __init__(
        self,
        directory: Path,
        *,
        mask: Mask,
        now: Now = utc_now,
        on_lost: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.now = now
        self.on_lost = on_lost
        self._directory = directory
        self._mask = mask
        self._format_of = lru_cache(_MAX_FORMATS)(self._make_format)
        self._queue: dict[TurnJournal, list[Line]] = {}
        self._held_lines = self._held_bytes = 0
        """What is queued or being written."""
        self._ended = False
        self._failing = False
        self._arrived = anyio.Event()
        self._wanted = anyio.Event()
        self._writer_thread = anyio.CapacityLimiter(1)
        self._probe_thread = anyio.CapacityLimiter(1)
        self._probing = threading.Lock()

    def open(
        self, conversation_id: str, turn_id: str, at: datetime, *, shown: Mask = str
    ) -> TurnJournal:
        """Return the journal of one turn, whose texts `shown` changes before they are masked. Never
        touches the disk.

        An existing file, of before a crash, is continued after its last line. Raise `ValueError` if
        `turn_id` is not shaped like one.
        """
        log_file = log_file_name(turn_id, at)
        envelope = {"conversation_id": conversation_id, "turn_id": turn_id}
        file = LogFile(self._directory / log_file, envelope)
        return TurnJournal(self, file, log_file, self._format_of(shown))

    def _make_format(self, shown: Mask) -> LineFormat:
        return LineFormat(mask=lambda text: self._mask(shown(text)))

    def enqueue(self, turn: TurnJournal, line: Line) -> bool:
        """Take a line; return False if the queue is full or the writer has ended."""
        is_full = (
            self._held_lines >= MAX_WAITING_LINES
            or self._held_bytes + line.size > MAX_WAITING_BYTES
        )
        if self._ended or (is_full and line.kind != "response"):
            return False
        self._queue.setdefault(turn, []).append(line)
        self._held_lines += 1
        self._held_bytes += line.size
        self._arrived.set()
        return True

    def hurry(self) -> None:
        """Write what is queued without waiting for more: a turn waits for it."""
        self._wanted.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Write queued lines until cancelled; one such task at a time.

        When cancelled, write what is queued within `DRAIN_TIMEOUT_S`. The rest, and every later
        line, counts as lost.
        """
        self._ended = False
        writing = anyio.CancelScope(shield=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write_until_ended, writing)
            task_status.started()
            try:
                await anyio.sleep_forever()
            finally:
                self._ended = True
                self._arrived.set()
                self._wanted.set()
                writing.deadline = anyio.current_time() + DRAIN_TIMEOUT_S

    async def _write_until_ended(self, scope: anyio.CancelScope) -> None:
        with scope:
            while not self._ended:
                await self._arrived.wait()
                with anyio.move_on_after(LINGER_S):
                    await self._wanted.wait()
                self._arrived, self._wanted = anyio.Event(), anyio.Event()
                while self._queue:
                    await self._write_next()
        for turn, lines in self._queue.items():
            self._settle(turn, lines, len(lines))
        self._queue = {}

    async def _write_next(self) -> None:
        """Write all queued lines of the turn that has waited longest."""
        turn = next(iter(self._queue))
        lines = self._queue.pop(turn)
        lost, fault = len(lines), None
        try:
            lost, fault = await anyio.to_thread.run_sync(
                turn.file.write_blocking,
                lines,
                turn.line_format,
                abandon_on_cancel=True,
                limiter=self._writer_thread,
            )
        finally:
            self._settle(turn, lines, lost)
        if fault is not None and not self._failing:
            log.error("journal_write_failed", extra={"reason": _reason(fault)})
        elif fault is None and self._failing:
            log.warning("journal_write_recovered")
        self._failing = fault is not None

    def _settle(self, turn: TurnJournal, lines: Sequence[Line], lost: int) -> None:
        self._held_lines -= len(lines)
        self._held_bytes -= sum(line.size for line in lines)
        turn.settle(len(lines), lost)
        if lost:
            self.on_lost(lost)

    async def ping(self) -> str | None:
        """Return why the journal cannot be written, as a sentence without paths, or None.

        Answers within `PROBE_TIMEOUT_S`.
        """
        with anyio.move_on_after(PROBE_TIMEOUT_S):
            return await anyio.to_thread.run_sync(
                self._probe_blocking, abandon_on_cancel=True, limiter=self._probe_thread
            )
        return TOO_SLOW

    def _probe_blocking(self) -> str | None:
        """Write a nameless file, unless an abandoned probe still hangs."""
        if not self._probing.acquire(blocking=False):
            return TOO_SLOW
        try:
            return probe_blocking(self._directory)
        finally:
            self._probing.release()


def probe_blocking(directory: Path) -> str | None:
    """Write a nameless file and drop it; return None if that worked, else a sentence."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            if file.write(_PROBE) < len(_PROBE):
                return "The journal cannot be written: the disk is full."
    except OSError as exc:
        return f"The journal cannot be written: {_reason(exc)}."
    return None


def _reason(fault: OSError) -> str:
    number = fault.errno or 0
    return _REASONS.get(number, os.strerror(number).lower())
