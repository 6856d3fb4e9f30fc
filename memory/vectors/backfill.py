"""Mends single holes of the vector index: what words found and the vectors lack is delivered to it again.

An index that is short of many items is made anew as a whole; one that lost a few is not worth it. So what
searches find is looked up, in the background and a few at a time, and what is missing goes into the outbox
once more. Nobody waits for it, and nothing is lost where it does not come to it: the next search finds
the hole again.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

import anyio
from anyio.abc import TaskStatus

from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)

MAX_WAITING: Final = 1000
"""Items that wait to be looked up; what comes when so many wait is let go."""
_BATCH: Final = 50
_PAUSE_S: Final = 0.1
"""Before each look-up: searches come first, also the one that it is for."""


class Holding(Protocol):
    """What knows which items the index holds."""

    async def missing(self, item_ids: Sequence[str]) -> set[str]:
        """Tell which of these items the index lacks; none while it is not whole and at work."""
        ...


class Deliveries(Protocol):
    """What has items delivered once more."""

    async def again(self, item_ids: Sequence[str]) -> int:
        """Have them delivered to the index; returns how many there were that do not wait already.

        Raises:
            StoreUnavailable: nothing was changed.
        """
        ...


class VectorBackfill:
    """Looks what was found up in the index. `run` it in a task group."""

    def __init__(
        self, index: Holding, deliveries: Deliveries, *, wake: Callable[[], None] = lambda: None
    ) -> None:
        self._index = index
        self._deliveries = deliveries
        self._wake = wake
        self._waiting: dict[str, None] = {}
        self._noted = anyio.Event()

    def note(self, item_ids: Iterable[str]) -> None:
        """Have items looked up soon; never waits."""
        for one in item_ids:
            if len(self._waiting) >= MAX_WAITING:
                break
            self._waiting[one] = None
        if self._waiting:
            self._noted.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Look items up until cancelled."""
        task_status.started()
        while True:
            await self._noted.wait()
            await anyio.sleep(_PAUSE_S)
            await self.look_up()

    async def look_up(self) -> int:
        """Look some of those that wait up, and have the missing ones delivered; returns how many."""
        some = list(self._waiting)[:_BATCH]
        for one in some:
            del self._waiting[one]
        if not self._waiting:
            self._noted = anyio.Event()
        missing = await self._index.missing(some)
        if not missing:
            return 0
        try:
            count = await self._deliveries.again([one for one in some if one in missing])
        except StoreUnavailable:
            _log.warning("vectors_not_backfilled", exc_info=True)
            return 0
        if count:
            _log.info("vectors_backfilled", extra={"items": count})
            self._wake()
        return count
