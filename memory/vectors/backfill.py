"""Fills single gaps of the vector index: items that words found and the vectors lack are delivered
again.

An index that is short of many items is rebuilt as a whole. Items that searches find are looked up
here in the background, a few at a time, and missing ones go into the outbox again. Nobody waits for
it, and nothing is lost if it is skipped: the next search finds the gap again.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import anyio

from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)

MAX_WAITING: Final = 1000
"""Items that wait to be looked up; more are ignored."""
_BATCH: Final = 50
_PAUSE_S: Final = 0.1
"""Before each look-up, so that searches come first."""


Missing = Callable[[Sequence[str]], Awaitable[set[str]]]
"""Returns which of these items the index lacks; none unless it is complete."""
DeliverAgain = Callable[[Sequence[str]], Awaitable[int]]
"""Enqueues items for the index and returns how many did not wait already; may raise
`StoreUnavailable`."""


class VectorBackfill:
    """Looks up found items in the index. `run` it in a task group."""

    def __init__(
        self,
        missing: Missing,
        deliver_again: DeliverAgain,
        *,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._missing = missing
        self._deliver_again = deliver_again
        self._wake = wake
        self._waiting: dict[str, None] = {}
        self._noted = anyio.Event()

    def note(self, item_ids: Iterable[str]) -> None:
        """Queue items to look up; never waits."""
        for item_id in item_ids:
            if len(self._waiting) >= MAX_WAITING:
                break
            self._waiting[item_id] = None
        if self._waiting:
            self._noted.set()

    async def run(self) -> None:
        """Look items up until cancelled."""
        while True:
            await self._noted.wait()
            await anyio.sleep(_PAUSE_S)
            await self.look_up()

    async def look_up(self) -> int:
        """Look up a batch and deliver the missing items; return how many."""
        some = list(self._waiting)[:_BATCH]
        for entry in some:
            del self._waiting[entry]
        if not self._waiting:
            self._noted = anyio.Event()
        missing = await self._missing(some)
        if not missing:
            return 0
        try:
            count = await self._deliver_again([entry for entry in some if entry in missing])
        except StoreUnavailable:
            _log.warning("vectors_not_backfilled", exc_info=True)
            return 0
        if count:
            _log.info("vectors_backfilled", extra={"items": count})
            self._wake()
        return count
