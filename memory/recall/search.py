"""Search: ask the retrievers, read the items, filter stale ones, fuse and rank the rest.

A slow or broken retriever is left out and named. Stale items are removed before scoring, so that
they take no place from others.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import anyio
import anyio.to_thread

from memory.clock import Now
from memory.items.item import KINDS, Item, ItemKind
from memory.items.scope import Scope
from memory.items.seen import NOTHING_SEEN, Seen
from memory.items.store import ItemSource
from memory.items.timespan import ALL_TIME, TimeSpan
from memory.recall.distinct import answers_first, distinct
from memory.recall.fuse import fuse
from memory.recall.query import Degradation, Found, HeldBack, Hit
from memory.recall.question_parts import question_parts
from memory.recall.ranking import rank
from memory.recall.retrievers import (
    NO_EVENTS,
    Gathered,
    Question,
    Ranked,
    Retriever,
    RetrieverName,
    SearchEvents,
    gather,
)
from memory.recall.stale_schema import split_stale

_log = logging.getLogger(__name__)

MAX_QUERIES: Final = 8
READ_AT_ONCE: Final = 2_000
"""Characters of the queries; longer ones are read in a worker thread."""
_DEFAULT_DEADLINE_S: Final = 5.0
_RETRIEVERS_SHARE: Final = 0.85
"""Part of the deadline for the retrievers; the rest is for reading the items."""


class MemorySearch:
    """Searches memory.

    `on_words_alone` is called with the ids that words found and vectors did not, because these
    items may be missing in the vector index.
    """

    def __init__(
        self,
        items: ItemSource,
        retrievers: Sequence[Retriever],
        *,
        now: Now,
        on_words_alone: Callable[[Sequence[str]], None] = lambda _: None,
        events: SearchEvents = NO_EVENTS,
    ) -> None:
        self._items = items
        self._retrievers = retrievers
        self._now = now
        self._on_words_alone = on_words_alone
        self._events = events

    async def search(
        self,
        q: str | Sequence[str],
        *,
        scope: Scope,
        kinds: Sequence[ItemKind] = KINDS,
        limit: int = 10,
        active_tools: Sequence[str] = (),
        deadline_s: float | None = None,
        seen: Seen = NOTHING_SEEN,
        span: TimeSpan = ALL_TIME,
    ) -> Found:
        """Return what has words of any of the queries, or is near to it, best first.

        Only cancellation is raised. Answers within the deadline with what there is. Asks the first
        eight queries; a long one by its parts, see `question_parts`. A weak hit is not worth
        showing unasked. What was replaced is held back.
        """
        queries = [query for query in ([q] if isinstance(q, str) else q) if query.strip()]
        asked = queries[:MAX_QUERIES]
        if sum(map(len, asked)) <= READ_AT_ONCE:
            parts = _parts_of(asked)
        else:
            parts = await anyio.to_thread.run_sync(_parts_of, asked)
        questions = [
            Question(text=part, scope=scope, kinds=kinds, seen=seen, span=span)
            for part in parts[:MAX_QUERIES]
        ]
        whole_s = _DEFAULT_DEADLINE_S if deadline_s is None else max(0.0, deadline_s)
        ends_at = anyio.current_time() + whole_s
        bound_s = whole_s * _RETRIEVERS_SHARE
        gathered = await gather(self._retrievers, questions, bound_s=bound_s, events=self._events)
        try:
            with anyio.fail_after(max(0.0, ends_at - anyio.current_time())):
                read = await self._read(gathered, scope)
        except TimeoutError:
            return Found(degraded=_with(gathered.degraded, "fulltext_timeout"))
        except Exception:  # noqa: BLE001  whatever is wrong with the store, the turn continues without memory
            _log.exception("items_not_read")
            return Found(degraded=_with(gathered.degraded, "fulltext_error"))
        found = gathered.found
        wanted = [item for item in read if item.kind in kinds and span.covers(item.occurred_at)]
        shown, held_back = await split_stale(
            [item for item in wanted if item.valid_until is None and not seen.has(item)],
            active_tools,
        )
        held_back += [
            HeldBack(id=item.id, reason="superseded")
            for item in wanted
            if item.valid_until is not None
        ]
        kept = {item.id: item for item in shown}
        hits = distinct(self._hits(found, kept), [item for item in read if seen.has(item)])
        if len(parts) > len(asked):  # a place among what was pasted says little
            strengths = _strengths(found)
            hits.sort(key=lambda hit: -strengths[hit.item.id])
        worth_showing = _worth_showing(found)
        hits = answers_first(hits, [query for query in asked if len(query) <= READ_AT_ONCE])
        by_vector = _ids(found, "vector")
        words_alone = [i for i in _ids(found, "fulltext") if i not in by_vector and i in kept]
        if words_alone:
            self._on_words_alone(words_alone)
        return Found(
            hits=hits[: max(0, limit)],
            held_back=[held for held in held_back if held.id in worth_showing],
            degraded=gathered.degraded,
            is_by_words=all(
                result.retriever == "fulltext" for result in found if result.candidates
            ),
        )

    async def _read(self, gathered: Gathered, scope: Scope) -> list[Item]:
        ids = _ids(gathered.found)
        if not ids:
            return []
        with self._events.timing("items"):
            found = await self._items.get_many(list(ids), scope)
        self._events.on_scanned(len(found))
        return found

    def _hits(self, lists: Sequence[Ranked], items: Mapping[str, Item]) -> list[Hit]:
        """Fuse and rank the candidates that may be shown."""
        kept = [
            replace(
                ranked, candidates=[found for found in ranked.candidates if found.item_id in items]
            )
            for ranked in lists
        ]
        fused = fuse(kept)
        return rank([(found, items[found.item_id]) for found in fused], self._now())


def _parts_of(queries: Sequence[str]) -> list[str]:
    return [part for query in queries for part in question_parts(query)]


def _ids(lists: Sequence[Ranked], name: RetrieverName | None = None) -> dict[str, None]:
    """Return the ids of the candidates of one retriever, or of all, in order."""
    return {
        candidate.item_id: None
        for ranked in lists
        if name in {None, ranked.retriever}
        for candidate in ranked.candidates
    }


def _worth_showing(lists: Sequence[Ranked]) -> set[str]:
    return {
        candidate.item_id
        for ranked in lists
        for candidate in ranked.candidates
        if not candidate.is_weak
    }


def _strengths(lists: Sequence[Ranked]) -> dict[str, float]:
    """Return the greatest strength of each item."""
    strengths: dict[str, float] = {}
    for ranked in lists:
        for candidate in ranked.candidates:
            known = strengths.get(candidate.item_id, 0.0)
            strengths[candidate.item_id] = max(known, candidate.strength or 0.0)
    return strengths


def _with(reasons: Sequence[Degradation], another: Degradation) -> tuple[Degradation, ...]:
    return tuple(dict.fromkeys((*reasons, another)))
