"""Search: the retrievers side by side, then the filter, then the order.

    retrievers, each within the deadline → items of the scope → stale tools held back → fused and ranked

A retriever that is slow or broken is left out and named. What is held back is held back before anything is
scored, so that it takes nobody's place.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import anyio

from memory.clock import Now
from memory.items import KINDS, Item, ItemKind
from memory.recall.fuse import Fusion, Ranked, fuse
from memory.recall.gather import Gathered, gather
from memory.recall.query import Degradation, Found, HeldBack, Hit
from memory.recall.ranking import rank
from memory.recall.retrievers import Question, Retriever, RetrieverName
from memory.recall.stale_schema import split_stale
from memory.scope import Scope

_log = logging.getLogger(__name__)

_MAX_QUERIES: Final = 8
_MAX_WEAK: Final = 30
_HEAD_CHARS: Final = 1000
_TAIL_CHARS: Final = 2999
"""Of a long question: what is wanted stands before or after what was pasted into it."""
_RETRIEVERS_SHARE: Final = 0.85
"""Of a deadline; the rest is for reading the items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """What bounds one search."""

    retriever_s: float = 5.0
    """A retriever that was given no nearer deadline."""


class ItemSource(Protocol):
    """Where the items are that were found."""

    async def get_many(self, item_ids: Sequence[str], scope: Scope) -> list[Item]:
        """Give those of the items that the scope covers."""
        ...


class MemorySearch:
    """Finds what is remembered."""

    def __init__(
        self,
        items: ItemSource,
        retrievers: Sequence[Retriever],
        *,
        now: Now,
        fusion: Fusion | None = None,
        limits: SearchLimits | None = None,
        on_words_alone: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        """Make one; `on_words_alone` is told what words found and meaning did not: it may be lacking there."""
        self._items = items
        self._arms = retrievers
        self._now = now
        self._fusion = fusion or Fusion()
        self._limits = limits or SearchLimits()
        self._on_words_alone = on_words_alone

    async def search(
        self,
        q: str | Sequence[str],
        *,
        scope: Scope,
        kinds: Sequence[ItemKind] = KINDS,
        limit: int = 10,
        active_tools: Sequence[str] = (),
        deadline_s: float | None = None,
    ) -> Found:
        """Find what fits any of the queries, best first; never raises but when cancelled.

        Answers within the deadline, with what there is by then. Of many queries the first eight are
        asked; of a long one its beginning and its end.
        """
        queries = [q] if isinstance(q, str) else list(q)
        questions = [
            Question(text=_bounded(query), scope=scope, kinds=kinds)
            for query in [query for query in queries if query.strip()][:_MAX_QUERIES]
        ]
        whole_s = self._limits.retriever_s if deadline_s is None else max(0.0, deadline_s)
        ends_at = anyio.current_time() + whole_s
        gathered = await gather(self._arms, questions, bound_s=whole_s * _RETRIEVERS_SHARE)
        try:
            with anyio.fail_after(max(0.0, ends_at - anyio.current_time())):
                read = await self._read(gathered, scope)
        except TimeoutError:
            return Found(degraded=_with(gathered.degraded, "fulltext_timeout"))
        except Exception:  # noqa: BLE001  whatever is wrong with the store, the turn goes on without memory
            _log.exception("items_not_read")
            return Found(degraded=_with(gathered.degraded, "fulltext_error"))
        shown, held_back = await split_stale(
            [item for item in read if item.kind in kinds], active_tools
        )
        kept = {item.id: item for item in shown}
        found = self._hits(gathered.found, kept, self._fusion)
        taken = {hit.item.id for hit in found}
        weak = self._hits(gathered.weak, kept, self._fusion.unweighted)
        alone = [item_id for item_id in _by_words_alone(gathered.found) if item_id in kept]
        if alone:
            self._on_words_alone(alone)
        return Found(
            hits=found[: max(0, limit)],
            weak=[hit for hit in weak if hit.item.id not in taken][:_MAX_WEAK],
            held_back=_without_weak(held_back, gathered.found),
            degraded=gathered.degraded,
        )

    async def _read(self, gathered: Gathered, scope: Scope) -> list[Item]:
        lists = [*gathered.found, *gathered.weak]
        ids = dict.fromkeys(
            candidate.item_id for ranked in lists for candidate in ranked.candidates
        )
        return await self._items.get_many(list(ids), scope) if ids else []

    def _hits(
        self, lists: Sequence[Ranked], items: Mapping[str, Item], fusion: Fusion
    ) -> list[Hit]:
        """Fuse and rank what may be shown; what may not was never in these lists."""
        kept = [
            replace(
                ranked,
                candidates=[
                    candidate for candidate in ranked.candidates if candidate.item_id in items
                ],
            )
            for ranked in lists
        ]
        ranked = rank([(fused, items[fused.item_id]) for fused in fuse(kept, fusion)], self._now())
        return [
            Hit(
                item=ranked_case.item,
                score=ranked_case.score,
                why=ranked_case.why,
                fit=ranked_case.fit,
            )
            for ranked_case in ranked
        ]


def _by_words_alone(found: Sequence[Ranked]) -> list[str]:
    def ids(retriever: RetrieverName) -> dict[str, None]:
        return {
            candidate.item_id: None
            for hit in found
            if hit.retriever == retriever
            for candidate in hit.candidates
        }

    near = ids("vector")
    return [item_id for item_id in ids("fulltext") if item_id not in near]


def _bounded(text: str) -> str:
    if len(text) <= _HEAD_CHARS + _TAIL_CHARS:
        return text
    return f"{text[:_HEAD_CHARS]}\n{text[-_TAIL_CHARS:]}"


def _without_weak(held_back: Sequence[HeldBack], found: Sequence[Ranked]) -> list[HeldBack]:
    """Tell of what would have been shown; of the rest nobody would have seen anything anyway."""
    ids = {candidate.item_id for hit in found for candidate in hit.candidates}
    return [held for held in held_back if held.id in ids]


def _with(reasons: Sequence[Degradation], another: Degradation) -> tuple[Degradation, ...]:
    return tuple(dict.fromkeys((*reasons, another)))
