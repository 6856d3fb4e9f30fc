"""Brings memory's record of turns up to date with the conversations.

The conversations note which turns changed; the record takes each change over and drops the note, so
that neither a crash nor a failure in between loses or doubles anything. The newest changes come
first: a turn that just ended or was just deleted does not wait for the history that an older server
left.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskStatus

from gateway.conversations.sql.record_queue import RecordQueue
from gateway.conversations.store import QueuedChange
from memory.background import Duties
from memory.errors import StoreUnavailable
from memory.record.index import RecordIndex

_log = logging.getLogger(__name__)

_BATCH: Final = 50
_REST_S: Final = 0.05
"""Between two batches of a long history, for other writers; and for changes that follow one."""
_RETRY_S: Final = 1.0
"""Before a store is tried again that could not be read or written."""


class RecordWorker:
    """Takes changes of turns over into the record; `run` it in a task group."""

    def __init__(
        self, queue: RecordQueue, index: RecordIndex, *, is_on: bool, duties: Duties | None = None
    ) -> None:
        """Take what is to be kept up to date; `is_on` False removes every turn from the record.

        `duties` keep out other servers, if there may be any.
        """
        self._queue = queue
        self._index = index
        self._is_on = is_on
        self._duties = duties
        self._history_up_to = 0
        self._lock = anyio.Lock(fast_acquire=True)
        """Held from reading a turn to writing its item, which nothing newer may overtake."""
        self._woken = anyio.Event()

    async def start(self) -> None:
        """Prepare for serving: from here on nothing is found that was deleted or switched off.

        Raise `StoreUnavailable` if the record or the conversations cannot be read or written.
        """
        if await self._index.store.is_on() != self._is_on:
            await self._queue.add_all()
            await self._index.store.switched(on=self._is_on)
        self._history_up_to = await self._queue.last_seq()
        # A copy says no more than the record says of the turn in whose place it comes: it is first.
        while self._is_on and await self._take(only_copies=True):
            pass
        while await self._take(only_deleted=self._is_on):
            pass

    async def begin(self) -> None:
        """Prepare for serving; if that fails the changes wait, because memory never keeps the
        server from it.
        """
        try:
            await self.start()
        except StoreUnavailable:
            _log.exception("record_not_started")

    def wake(self) -> None:
        """Announce a change. Call it on the loop; it never waits."""
        self._woken.set()

    async def catch_up(self) -> None:
        """Take over what changed since the start; may be cancelled at any await.

        Raises:
            StoreUnavailable: as `start`.
        """
        while await self._take(after=self._history_up_to):
            pass

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Take over all changes, then wait for more, until cancelled; what a full disk refused is
        tried again.
        """
        task_status.started()
        while True:
            self._woken = anyio.Event()
            try:
                while await self._take():  # noqa: ASYNC110  nothing signals that others have written
                    await anyio.sleep(_REST_S)
            except StoreUnavailable:
                _log.warning("record_not_written", exc_info=True)
                await anyio.sleep(_RETRY_S)
                continue
            await self._woken.wait()
            await anyio.sleep(_REST_S)

    async def _take(
        self, *, after: int = 0, only_deleted: bool = False, only_copies: bool = False
    ) -> bool:
        """Take over some changes, the newest first; return whether there may be more."""
        newest = partial(
            self._queue.newest, after=after, only_deleted=only_deleted, only_copies=only_copies
        )
        if self._duties is None:
            async with self._lock:
                return await self._take_over(await newest(limit=_BATCH))
        if not await newest(limit=1):
            return False
        async with self._lock, self._duties.alone("record"):
            return await self._take_over(await newest(limit=_BATCH))

    async def _take_over(self, changes: Sequence[QueuedChange]) -> bool:
        if not changes:
            return False
        turns = {queued.change.turn_id: queued.change for queued in changes}
        await self._index.apply(
            [change if self._is_on else replace(change, turn=None) for change in turns.values()]
        )
        await self._queue.done(changes)
        return len(changes) == _BATCH
