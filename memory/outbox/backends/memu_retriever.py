"""memU as a retriever of the search: asked with the others, and never believed by itself.

memU names the nearest that it has, at most five, however far off they be and with no measure that
could be compared: asked about something that nobody ever told it, it names five all the same. So
its answer shows nothing by itself. It lifts what another retriever is sure of; the rest is weak: a
model may choose from it where one is asked, and nobody else sees. And it has no say over cases,
which go by how well they fit.
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
"""As many as the package looks for; of a server's longer list the rest is further off still."""
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
