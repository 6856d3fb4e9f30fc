"""memU as a retriever of the search, whose answer counts only beside another retriever's.

memU returns the nearest items that it has, at most five, however distant they are, without a
comparable score, and also for a question about something that it was never given. So its answer
only raises items of which another retriever is sure. The other items are weak: a model that is
asked to choose may choose from them, and otherwise they are not shown. Cases are ranked by their
fit, so memU has no part in their order.
"""

import logging
from collections.abc import Callable
from typing import Final

import anyio

from memory.clock import Now
from memory.errors import BackendResting, BackendUnavailable, DeliveryRefused
from memory.outbox.backend import RetrievingBackend
from memory.recall.query import RECALLED_KINDS
from memory.recall.retrievers import Candidate, Question, RetrieverAnswer, RetrieverName
from memory.remote.breaker import Breaker, BreakerLimits, BreakerState, guarding

_log = logging.getLogger(__name__)

_MOST: Final = 5
"""As many as the package looks for; the rest of a server's longer list is more distant."""
_HASTE_S: Final = 1.0
"""With less than this before the deadline a question is one of a turn, whose reply waits for it."""


class MemuRetriever:
    """Asks memU, unless it failed again and again lately."""

    name: RetrieverName = "memu"

    def __init__(
        self,
        backend: RetrievingBackend,
        *,
        now: Now,
        mask: Callable[[str], str],
        limits: BreakerLimits | None = None,
        on_breaker: Callable[[BreakerState], None] = lambda _: None,
    ) -> None:
        self._backend = backend
        self._now = now
        self._mask = mask
        limits = limits or BreakerLimits()
        self._in_haste = Breaker(limits, on_breaker)
        self._at_leisure = Breaker(limits, on_breaker)
        """A memU that is too slow for turns may do for searches: neither shuts it off for the
        other.
        """

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        """Name what memU names; a deadline that it misses counts as a failure of its."""
        if not set(question.kinds) & set(RECALLED_KINDS):
            return RetrieverAnswer()
        left_s = anyio.current_effective_deadline() - anyio.current_time()
        breaker = self._in_haste if left_s < _HASTE_S else self._at_leisure
        try:
            with guarding(breaker, self._now):
                ids = await self._backend.retrieve(
                    self._mask(question.text), question.scope, limit=min(limit, _MOST)
                )
        except BackendResting:
            return RetrieverAnswer(degraded=("breaker_open",))
        except (DeliveryRefused, BackendUnavailable) as exc:
            _log.warning("memu_not_read", extra={"reason": str(exc)})
            return RetrieverAnswer(degraded=("memu_error",))
        return RetrieverAnswer(
            candidates=[Candidate(item_id=item_id, strength=None, is_weak=True) for item_id in ids]
        )
