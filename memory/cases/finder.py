"""Finds cases: for whoever asks, and for the case that is being written.

    question → search of memory (words first, vectors beside) → stale tools held back → ranked by trust, too

The wall is in the search itself: an app's callers find what was recorded for it and what holds for every
app, and nothing else takes a place.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from memory.cases.case import Case, CaseCaller, CaseContent, Vote
from memory.cases.nearby import Nearby
from memory.cases.noting import note_shown
from memory.cases.ranking import Candidate, RankedCase, rank
from memory.cases.results import DEFAULT_TOP_K, MAX_TOP_K, CaseRefused, SearchAnswer
from memory.cases.retry import Deciding
from memory.cases.store import CaseStore
from memory.cases.summary import Shown, summarize
from memory.cases.variety import varied
from memory.cases.votes import tally
from memory.clock import Now
from memory.recall.query import Hit
from memory.recall.search import MemorySearch
from memory.scope import Scope, SearchScope

_POOL: Final = 60
"""Hits that are ranked by trust: it moves a case by some places, never from far behind."""


class Backfilling(Protocol):
    """What mends holes of the vector index."""

    def note(self, item_ids: Iterable[str]) -> None:
        """Have items looked up soon; never waits."""
        ...


def case_scope(caller: CaseCaller) -> SearchScope:
    """Give what a caller may see: what is of its app, or of none.

    Of an environment likewise, where it wants one alone.
    """
    return SearchScope(
        owner_id=caller.scope.owner_id,
        app_code=caller.scope.app_code,
        environment=caller.scope.environment if caller.only_environment else None,
        or_without=("app_code", "environment"),
    )


class CaseFinder:
    """Finds cases."""

    def __init__(
        self,
        search: MemorySearch,
        store: CaseStore,
        *,
        now: Now,
        backfill: Backfilling | None = None,
    ) -> None:
        self._search = search
        self._store = store
        self._now = now
        self._backfill = backfill
        self._deciding = Deciding()

    async def find(
        self,
        caller: CaseCaller,
        query: object,
        top_k: object = DEFAULT_TOP_K,
        *,
        deadline_s: float | None = None,
    ) -> SearchAnswer:
        """Find what fits a question, best first, and note that the conversation was shown it.

        Raises:
            CaseRefused: INVALID_QUERY, INVALID_TOP_K.
            StoreUnavailable: the cases cannot be read; what fails of the search is told in the answer.
        """
        question, count = _question(query), _count(top_k)
        scope = case_scope(caller)
        found = await self._search.search(
            question,
            scope=scope,
            kinds=("case",),
            limit=_POOL,
            active_tools=caller.active_tools,
            deadline_s=deadline_s,
        )
        cases = await self._cases([*found.hits, *found.weak], scope)
        votes = await self._store.votes(list(cases)) if cases else {}
        likely = _candidates(_with_weak(found.hits, found.weak), cases)
        now = self._now()
        best = await self._deciding.run(
            lambda: varied(rank(likely, votes, caller.scope, now), count)
        )
        shown = await self._shown(caller, best, votes)
        await note_shown(self._store, caller, [item.case for item in shown])
        if self._backfill is not None:  # at the end: what it starts would hold this search up
            self._backfill.note(hit.item.id for hit in found.hits)
        return SearchAnswer(
            cases=[summarize(item) for item in shown],
            degraded=found.degraded,
            held_back=[held.id for held in found.held_back],
        )

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> Nearby:
        """Find what may be related to a case of this content and scope, or the same, likeliest first.

        Of its app and of none; of every environment. Only what search may show.

        Raises:
            StoreUnavailable: the cases cannot be read.
        """
        wanted = SearchScope(
            owner_id=scope.owner_id, app_code=scope.app_code, or_without=("app_code",)
        )
        texts = (content.symptom_summary, content.root_cause, content.diagnosis)
        found = await self._search.search(
            texts,
            scope=wanted,
            kinds=("case",),
            limit=_POOL,
        )
        known = await self._cases([*found.hits, *found.weak], wanted)
        shown = [case for case in known.values() if case.is_findable]
        return Nearby(cases=shown[:limit], degraded=found.degraded)

    async def _cases(self, hits: Sequence[Hit], scope: Scope) -> Mapping[str, Case]:
        """Give the cases behind hits by their ids, in the order of the hits."""
        ids = [hit.item.id for hit in hits]
        cases = await self._store.get(ids, scope.owner_id) if ids else []
        return {case.case_id: case for case in cases if scope.covers(case.scope)}

    async def _shown(
        self, caller: CaseCaller, ranked: Sequence[RankedCase], votes: Mapping[str, Sequence[Vote]]
    ) -> list[Shown]:
        if not ranked:
            return []
        related = await self._store.count_related(
            [ranked_case.case.case_id for ranked_case in ranked], app_code=caller.scope.app_code
        )
        return [
            Shown(
                case=ranked_case.case,
                score=ranked_case.score,
                why=ranked_case.why,
                feedback=tally(ranked_case.case, votes[ranked_case.case.case_id]),
                similar_count=related[ranked_case.case.case_id],
            )
            for ranked_case in ranked
        ]


def _candidates(hits: Sequence[Hit], cases: Mapping[str, Case]) -> list[Candidate]:
    return [
        Candidate(case=cases[hit.item.id], relevance=hit.fit, why=hit.why)
        for hit in hits
        if hit.item.id in cases
    ]


def _with_weak(hits: Sequence[Hit], weak: Sequence[Hit]) -> list[Hit]:
    """Add what recall would not show unasked: whoever searches on purpose can judge it, below the rest."""
    least = min((hit.fit for hit in hits), default=1.0)
    below = [
        replace(hit, fit=hit.fit * min(1.0, least), why=f"weak match: {hit.why}") for hit in weak
    ]
    return [*hits, *below]


def _question(query: object) -> str:
    if not isinstance(query, str) or not query.strip():
        raise CaseRefused("INVALID_QUERY", "Say in `query` what to look for, in a few words.")
    return query


def _count(top_k: object) -> int:
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= MAX_TOP_K:
        raise CaseRefused("INVALID_TOP_K", f"`top_k` is a whole number from 1 to {MAX_TOP_K}.")
    return top_k
