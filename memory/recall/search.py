"""Search: ask the retrievers, read the items, filter stale ones, fuse and rank the rest.

A slow or broken retriever is left out and named. Stale items are removed before scoring, so that
they take no place from others.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from memory.recall.fuse import Fused, fuse
from memory.recall.query import MAX_SHOWN, Degradation, Found, HeldBack, Hit
from memory.recall.question_parts import question_parts
from memory.recall.ranking import rank
from memory.recall.retrievers import (
    NO_EVENTS,
    Question,
    Ranked,
    Retriever,
    RetrieverName,
    SearchEvents,
    gather,
)
from memory.recall.shown import likely
from memory.recall.stale_schema import split_stale

_log = logging.getLogger(__name__)

MAX_QUERIES: Final = 8
READ_AT_ONCE: Final = 2_000
"""Characters of the queries; longer ones are read in a worker thread."""
_DEFAULT_DEADLINE_S: Final = 5.0
_RETRIEVERS_SHARE: Final = 0.85
"""Part of the deadline for the retrievers; the rest is for reading the items."""
_SPARE: Final = 6
"""Candidates that are read beyond the limit: some tell what a better one tells. All are read only
if that turns out too few, or if one of these may not be shown.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What a search is to find."""

    kinds: Sequence[ItemKind]
    active_tools: Sequence[str]
    seen: Seen
    span: TimeSpan
    queries: Sequence[str]
    strengths: Mapping[str, float]
    """Of the candidates, if they are ordered by these and not by their places; else empty."""

    def fits(self, item: Item) -> bool:
        return item.kind in self.kinds and self.span.covers(item.occurred_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """What may be shown of some candidates, best first."""

    hits: Sequence[Hit] = ()
    held_back: Sequence[HeldBack] = ()
    kept: Mapping[str, Item] = field(default_factory=dict)
    is_final: bool = False
    """True if reading more candidates changes no place."""


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
        showing unasked. What was replaced is held back. Beside `limit` hits there is what a prompt
        would be shown.
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
        lists = gathered.found
        # a place among what was pasted says little
        strengths = _strengths(lists) if len(parts) > len(asked) else {}
        wanted = _Wanted(
            kinds=kinds,
            active_tools=active_tools,
            seen=seen,
            span=span,
            queries=[query for query in asked if len(query) <= READ_AT_ONCE],
            strengths=strengths,
        )
        order = sorted(fuse(lists), key=lambda fused: -strengths.get(fused.item_id, 0.0))
        is_by_words = all(ranked.retriever == "fulltext" for ranked in lists if ranked.candidates)
        most = max(0, limit)
        first = order[: most + _SPARE]
        answer, beyond = _Judged(), list[Fused]()
        for some in (first, order) if len(first) < len(order) else (order,):
            try:
                with anyio.fail_after(max(0.0, ends_at - anyio.current_time())):
                    read = await self._read([fused.item_id for fused in some], scope)
            except TimeoutError:
                return Found(degraded=_with(gathered.degraded, "fulltext_timeout"))
            except Exception:  # noqa: BLE001  whatever is wrong with the store, the turn continues without memory
                _log.exception("items_not_read")
                return Found(degraded=_with(gathered.degraded, "fulltext_error"))
            answer = await self._judged(wanted, lists, some, read)
            beyond = likely(order[len(some) :], is_by_words=is_by_words)
            near = likely(answer.hits, is_by_words=is_by_words)
            has_near = len(near) > MAX_SHOWN or not beyond
            if answer.is_final and has_near and len(answer.hits) >= most:
                break
        by_vector = _ids(lists, "vector")
        words_alone = [
            item_id
            for item_id in _ids(lists, "fulltext")
            if item_id not in by_vector and item_id in answer.kept
        ]
        if words_alone:
            self._on_words_alone(words_alone)
        worth_showing = _worth_showing(lists)
        return Found(
            hits=answer.hits[:most],
            more=answer.hits[most:],
            not_told=len(beyond),
            held_back=[held for held in answer.held_back if held.id in worth_showing],
            degraded=gathered.degraded,
            is_by_words=is_by_words,
        )

    async def _read(self, ids: Sequence[str], scope: Scope) -> list[Item]:
        if not ids:
            return []
        with self._events.timing("items"):
            found = await self._items.get_many(ids, scope)
        self._events.on_scanned(len(found))
        return found

    async def _judged(
        self,
        wanted: _Wanted,
        lists: Sequence[Ranked],
        order: Sequence[Fused],
        read: Sequence[Item],
    ) -> _Judged:
        """Rank the candidates of `order` that were read and may be shown."""
        items = [item for item in read if wanted.fits(item)]
        shown, held_back = await split_stale(
            [item for item in items if item.valid_until is None and not wanted.seen.has(item)],
            wanted.active_tools,
        )
        held_back += [
            HeldBack(id=item.id, reason="superseded")
            for item in items
            if item.valid_until is not None
        ]
        kept = {item.id: item for item in shown}
        is_all = len(kept) == len(order)
        fused = order if is_all else fuse([_among(ranked, kept) for ranked in lists])
        ranked = rank([(found, kept[found.item_id]) for found in fused], self._now())
        hits = distinct(ranked, [item for item in read if wanted.seen.has(item)])
        hits.sort(key=lambda hit: -wanted.strengths.get(hit.item.id, 0.0))
        answers = answers_first(hits, wanted.queries)
        return _Judged(
            hits=answers, held_back=held_back, kept=kept, is_final=is_all and answers == hits
        )


def _parts_of(queries: Sequence[str]) -> list[str]:
    return [part for query in queries for part in question_parts(query)]


def _among(ranked: Ranked, items: Mapping[str, Item]) -> Ranked:
    """Return an answer without the candidates that may not be shown."""
    kept = [candidate for candidate in ranked.candidates if candidate.item_id in items]
    return replace(ranked, candidates=kept)


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
