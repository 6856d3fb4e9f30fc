"""Search: ask the retrievers, read the items, filter stale ones, fuse and rank the rest.

A slow or broken retriever is left out and named. Stale items are removed before scoring, so that they take
no place from others.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

import anyio

from memory.clock import Now
from memory.items import KINDS, Item, ItemKind
from memory.recall.fuse import Fusion, fuse
from memory.recall.query import Degradation, Found, Hit
from memory.recall.ranking import rank
from memory.recall.retrievers import Gathered, Question, Ranked, Retriever, RetrieverName, gather
from memory.recall.stale_schema import split_stale
from memory.scope import Scope

_log = logging.getLogger(__name__)

_MAX_QUERIES: Final = 8
_DEFAULT_DEADLINE_S: Final = 5.0
_MAX_WEAK: Final = 30
_HEAD_CHARS: Final = 1000
_TAIL_CHARS: Final = 2999
"""Parts of a long question that are asked; the request stands before or after what was pasted."""
_RETRIEVERS_SHARE: Final = 0.85
"""Part of the deadline for the retrievers; the rest is for reading the items."""


class ItemSource(Protocol):
    """Reads items."""

    async def get_many(self, item_ids: Sequence[str], scope: Scope) -> list[Item]:
        """Return those of the items that the scope covers."""
        ...


class MemorySearch:
    """Searches memory.

    `on_words_alone` is called with the ids that words found and vectors did not, because these items may
    be missing in the vector index.
    """

    def __init__(
        self,
        items: ItemSource,
        retrievers: Sequence[Retriever],
        *,
        now: Now,
        fusion: Fusion | None = None,
        on_words_alone: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        self._items = items
        self._retrievers = retrievers
        self._now = now
        self._fusion = fusion or Fusion()
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
        """Return what fits any of the queries, best first; only cancellation is raised.

        Answers within the deadline with what there is. Asks the first eight queries, and the beginning and
        the end of a long one.
        """
        queries = [query for query in ([q] if isinstance(q, str) else q) if query.strip()]
        questions = [
            Question(text=_shortened(query), scope=scope, kinds=kinds)
            for query in queries[:_MAX_QUERIES]
        ]
        whole_s = _DEFAULT_DEADLINE_S if deadline_s is None else max(0.0, deadline_s)
        ends_at = anyio.current_time() + whole_s
        gathered = await gather(self._retrievers, questions, bound_s=whole_s * _RETRIEVERS_SHARE)
        try:
            with anyio.fail_after(max(0.0, ends_at - anyio.current_time())):
                read = await self._read(gathered, scope)
        except TimeoutError:
            return Found(degraded=_with(gathered.degraded, "fulltext_timeout"))
        except Exception:  # noqa: BLE001  whatever is wrong with the store, the turn continues without memory
            _log.exception("items_not_read")
            return Found(degraded=_with(gathered.degraded, "fulltext_error"))
        shown, held_back = await split_stale(
            [item for item in read if item.kind in kinds], active_tools
        )
        kept = {item.id: item for item in shown}
        hits = self._hits(gathered.found, kept, self._fusion)
        taken = {hit.item.id for hit in hits}
        weak = self._hits(gathered.weak, kept, self._fusion.unweighted)
        by_vector = _ids(gathered.found, "vector")
        words_alone = [
            i for i in _ids(gathered.found, "fulltext") if i not in by_vector and i in kept
        ]
        if words_alone:
            self._on_words_alone(words_alone)
        found_ids = _ids(gathered.found)
        return Found(
            hits=hits[: max(0, limit)],
            weak=[hit for hit in weak if hit.item.id not in taken][:_MAX_WEAK],
            held_back=[held for held in held_back if held.id in found_ids],  # without weak ones
            degraded=gathered.degraded,
        )

    async def _read(self, gathered: Gathered, scope: Scope) -> list[Item]:
        ids = _ids([*gathered.found, *gathered.weak])
        return await self._items.get_many(list(ids), scope) if ids else []

    def _hits(
        self, lists: Sequence[Ranked], items: Mapping[str, Item], fusion: Fusion
    ) -> list[Hit]:
        """Fuse and rank the candidates that may be shown."""
        kept = [
            replace(
                ranked, candidates=[found for found in ranked.candidates if found.item_id in items]
            )
            for ranked in lists
        ]
        return rank([(fused, items[fused.item_id]) for fused in fuse(kept, fusion)], self._now())


def _ids(lists: Sequence[Ranked], name: RetrieverName | None = None) -> dict[str, None]:
    """Return the ids of the candidates of one retriever, or of all, in order."""
    return {
        candidate.item_id: None
        for ranked in lists
        if name in {None, ranked.retriever}
        for candidate in ranked.candidates
    }


def _shortened(text: str) -> str:
    if len(text) <= _HEAD_CHARS + _TAIL_CHARS:
        return text
    return f"{text[:_HEAD_CHARS]}\n{text[-_TAIL_CHARS:]}"


def _with(reasons: Sequence[Degradation], another: Degradation) -> tuple[Degradation, ...]:
    return tuple(dict.fromkeys((*reasons, another)))
