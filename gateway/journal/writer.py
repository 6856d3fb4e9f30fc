"""Writes the journal: turns hand lines over on the event loop, one thread writes them in batches.

A turn never waits for the disk and never fails for it. What cannot be kept, because the queue is at
its bound or the disk takes nothing, is counted, told by a line in the file as soon as one can be
written again, and by `TurnJournal.close`.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskStatus

from gateway.journal.batch import RESERVED_KINDS, Batch, Entry, TurnFile
from gateway.journal.files import log_file_name
from gateway.journal.line import MAX_LINE_BYTES, JournalKind, Line, LineForm
from gateway.journal.probe import PROBE_TIMEOUT_S, TOO_SLOW, name_fault, probe_blocking
from gateway.journal.reading import has_response
from gateway.journal.waiting import MAX_WAITING_BYTES, WaitingLines, estimate_bytes
from gateway.observability.masking import Mask
from memory.clock import Now, utc_now

MAX_WAITING_LINES = 10_000
LINGER_S = 0.1
"""Lines that come within this time are written together, unless somebody waits for them.

Turning a line into JSON and masking it is work for the interpreter, which the loop would wait for
while a turn's first words come."""
CLOSE_TIMEOUT_S = 5.0
DRAIN_TIMEOUT_S = 5.0
_BATCH_LINES = 1000
_BATCH_BYTES = 8 * 1024 * 1024

log = logging.getLogger(__name__)


class _Intake:
    """The event loop's side: lines come in, the writer is woken."""

    def __init__(
        self, *, max_lines: int, max_bytes: int, now: Now, on_lost: Callable[[int], None]
    ) -> None:
        self.now = now
        self.on_lost = on_lost
        self.waiting: WaitingLines[Entry] = WaitingLines(max_lines=max_lines, max_bytes=max_bytes)
        self.ended = False
        self._came = anyio.Event()
        self._wanted = anyio.Event()

    def offer(self, entry: Entry) -> bool:
        """Take a line in; False when there is no room, or nobody who would write it."""
        if self.ended:
            return False
        size = estimate_bytes(entry.line.fields)
        if not self.waiting.offer(entry, size, reserved=entry.line.kind in RESERVED_KINDS):
            return False
        self._came.set()
        return True

    def hurry(self) -> None:
        """Say that somebody waits for what is there."""
        self._wanted.set()

    async def wait(self) -> None:
        """Return when there are lines, a little later so that more may come with them."""
        await self._came.wait()
        self._came = anyio.Event()
        with anyio.move_on_after(LINGER_S):
            await self._wanted.wait()
        self._wanted = anyio.Event()


class TurnJournal:
    """One turn's file. Made by `Journal.open`; for the event loop alone."""

    def __init__(self, intake: _Intake, log_file: str, envelope: Mapping[str, str]) -> None:
        self.log_file = log_file
        """`<YYYY-MM-DD>/<turn_id>.jsonl`, the date in UTC; relative to the journal's directory."""
        self.lost = 0
        """Lines of this turn that could not be kept."""
        self._intake = intake
        self._file = TurnFile(log_file, envelope, self._settle)
        self._refused = 0
        self._pending = 0
        self._settled = anyio.Event()
        self._closed = False

    def write(self, kind: JournalKind, /, **fields: Any) -> None:
        """Hand a line over. Never blocks, never raises.

        The values are read later, in another thread: they must not be changed after this call.
        At the queue's bound the line is dropped and counted in `lost`; `response` has a reserve.
        After `close` every line is. A field that is named like one of the line's own (`ts`, `seq`,
        `conversation_id`, `turn_id`, `kind`) is kept with an underscore behind its name, unless
        it says the same.
        """
        line = Line(at=self._intake.now(), kind=kind, fields=fields, lost_before=self._refused)
        if not self._closed and self._intake.offer(Entry(self._file, line)):
            self._pending += 1
            return
        self._refused += 1
        self.lost += 1
        self._intake.on_lost(1)

    async def flush(self, *, within_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Wait until every line so far is with the operating system, `within_s` at most.

        False when that took longer, or when a line of this turn was lost.
        """
        with anyio.move_on_after(within_s):
            while self._pending:
                self._intake.hurry()
                await self._settled.wait()
        return self._pending == 0 and self.lost == 0

    async def close(self, *, within_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Take no more lines and wait as `flush` does; idempotent.

        False when a line was lost, or is not written yet: the journal still tries.
        """
        self._closed = True
        return await self.flush(within_s=within_s)

    def _settle(self, done: int, lost: int) -> None:
        self._pending -= done
        self.lost += lost
        if self._pending == 0:
            self._settled.set()
            self._settled = anyio.Event()


class Journal:
    """The journal of all turns below one directory. For one event loop.

    At most `max_waiting` lines and `max_waiting_bytes` (an estimate) wait for the disk, an eighth
    more for `response` lines; what comes beyond is dropped and counted. `on_lost` is told of
    every lost line, on the event loop; it must not raise.
    """

    def __init__(
        self,
        directory: Path,
        *,
        mask: Mask,
        now: Now = utc_now,
        max_waiting: int = MAX_WAITING_LINES,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
        max_line_bytes: int = MAX_LINE_BYTES,
        on_lost: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._directory = directory
        self._form = LineForm(mask=mask, max_bytes=max_line_bytes)
        self._intake = _Intake(
            max_lines=max_waiting, max_bytes=max_waiting_bytes, now=now, on_lost=on_lost
        )
        self._batch: Batch | None = None
        self._running = False
        self._failing = False
        self._writer_thread = anyio.CapacityLimiter(1)
        self._probe_thread = anyio.CapacityLimiter(1)
        self._probing = threading.Lock()

    def open(self, conversation_id: str, turn_id: str, at: datetime) -> TurnJournal:
        """Give the journal of one turn. Never touches the disk.

        A file that is there already, after a crash say, is continued behind its last line.

        Raises:
            ValueError: `turn_id` has not the shape of one.
        """
        envelope = {"conversation_id": conversation_id, "turn_id": turn_id}
        return TurnJournal(self._intake, log_file_name(turn_id, at), envelope)

    async def has_response(self, turn: TurnJournal) -> bool:
        """Whether a turn's file has come to its last line already, before a crash say."""
        return await anyio.to_thread.run_sync(
            has_response, self._directory, turn.log_file, limiter=self._writer_thread
        )

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Write what turns hand over, until cancelled; one such task at a time.

        Cancelled, it first writes what waits, within `DRAIN_TIMEOUT_S`; the rest, and every
        line that comes afterwards, counts as lost.
        """
        assert not self._running, "the journal has one writer"
        self._running, self._intake.ended = True, False
        try:
            task_status.started()
            while True:
                await self._intake.wait()
                await self._write_waiting()
        finally:
            with anyio.move_on_after(DRAIN_TIMEOUT_S, shield=True):
                await self._write_waiting()
            self._give_up()
            self._running = False

    async def ping(self) -> str | None:
        """Say what keeps the journal from being written, in a sentence without paths; else None.

        Answers within `PROBE_TIMEOUT_S`.
        """
        with anyio.move_on_after(PROBE_TIMEOUT_S):
            return await anyio.to_thread.run_sync(
                self._probe_blocking,
                abandon_on_cancel=True,
                limiter=self._probe_thread,
            )
        return TOO_SLOW

    def _probe_blocking(self) -> str | None:
        """Probe, unless a probe that nobody waits for any more still hangs."""
        if not self._probing.acquire(blocking=False):
            return TOO_SLOW
        try:
            return probe_blocking(self._directory)
        finally:
            self._probing.release()

    async def _write_waiting(self) -> None:
        while self._batch is not None or self._intake.waiting:
            if self._batch is None:
                taken = self._intake.waiting.take(max_lines=_BATCH_LINES, max_bytes=_BATCH_BYTES)
                self._batch = Batch(*taken)
            # A cancelled wait leaves the batch with its thread; the drain waits for it here again.
            await anyio.to_thread.run_sync(
                self._batch.write_blocking,
                self._directory,
                self._form,
                abandon_on_cancel=True,
                limiter=self._writer_thread,
            )
            self._finish(self._batch, self._batch.lost)

    def _finish(self, batch: Batch, lost: Mapping[TurnFile, int]) -> None:
        self._batch = None
        self._intake.waiting.release(len(batch.entries), batch.size)
        for file, done in batch.count_by_file().items():
            file.settle(done, lost.get(file, 0))
        if all_lost := sum(lost.values()):
            self._intake.on_lost(all_lost)
        if batch.fault is not None and not self._failing:
            log.error("journal_write_failed", extra={"reason": name_fault(batch.fault)})
        elif batch.fault is None and self._failing:
            log.warning("journal_write_recovered")
        self._failing = batch.fault is not None

    def _give_up(self) -> None:
        """Count as lost what is still there, so that nobody waits for it."""
        self._intake.ended = True
        while self._batch is not None or self._intake.waiting:
            if self._batch is None:
                taken = self._intake.waiting.take(max_lines=_BATCH_LINES, max_bytes=_BATCH_BYTES)
                self._batch = Batch(*taken)
            self._finish(self._batch, self._batch.count_by_file())
