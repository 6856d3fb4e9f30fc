"""Finds cases: for a question, and for a case that is being written.

An app's callers find what was recorded for their app and for no app; the search itself leaves out
the rest.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from memory.cases.case import Case, CaseCaller, CaseContent
from memory.cases.ranking import RankedCase, rank, summarize
from memory.cases.relations import Nearby
from memory.cases.results import DEFAULT_TOP_K, MAX_TOP_K, CaseRefused, SearchAnswer, sentence
from memory.cases.store import SqlCaseStore
from memory.cases.unit_of_work import DecisionThreads, note_shown
from memory.cases.votes import tally
from memory.clock import Now
from memory.items.scope import Scope, SearchScope
from memory.recall.query import Hit
from memory.recall.search import MemorySearch

_POOL: Final = 60
"""Hits that are ranked by trust as well."""


class CaseFinder:
    """Finds cases."""

    def __init__(
        self,
        search: MemorySearch,
        store: SqlCaseStore,
        *,
        now: Now,
        on_found: Callable[[Iterable[str]], None] = lambda _: None,
    ) -> None:
        self._search = search
        self._store = store
        self._now = now
        self._on_found = on_found
        self._threads = DecisionThreads()

    async def find(
        self,
        caller: CaseCaller,
        query: object,
        top_k: object = DEFAULT_TOP_K,
        *,
        deadline_s: float | None = None,
    ) -> SearchAnswer:
        """Return the cases that fit a question, best first, and record that they were shown.

        Raise `CaseRefused` with INVALID_QUERY or INVALID_TOP_K, and `StoreUnavailable` if the cases
        cannot be read; failures of the search are named in the answer.
        """
        if not isinstance(query, str) or not query.strip():
            raise CaseRefused("INVALID_QUERY", "Say in `query` what to look for, in a few words.")
        count = _count(top_k)
        scope = SearchScope(
            owner_id=caller.scope.owner_id,
            app_code=caller.scope.app_code,
            environment=caller.scope.environment if caller.only_environment else None,
            or_without=("app_code", "environment"),
        )
        found = await self._search.search(
            query,
            scope=scope,
            kinds=("case",),
            limit=_POOL,
            active_tools=caller.active_tools,
            deadline_s=deadline_s,
        )
        # where nothing fits, what shares a few words with the question would pass for an answer
        hits = _with_weak(found.hits)
        cases = await self._cases(hits, scope)
        votes = await self._store.votes(list(cases)) if cases else {}
        candidates = [
            RankedCase(case=cases[hit.item.id], score=hit.fit, why=hit.why)
            for hit in hits
            if hit.item.id in cases
        ]
        now = self._now()
        ranked = await self._threads.run(lambda: rank(candidates, votes, caller.scope, now))
        best = ranked[:count]
        ids = [ranked.case.case_id for ranked in best]
        related = await self._store.count_related(ids, app_code=caller.scope.app_code)
        await note_shown(self._store, caller, [ranked.case for ranked in best])
        # last, because the work it starts would delay this search
        self._on_found(hit.item.id for hit in found.hits)
        return SearchAnswer(
            cases=[
                summarize(
                    found_case,
                    feedback=tally(found_case.case, votes[found_case.case.case_id]),
                    similar_count=related[found_case.case.case_id],
                )
                for found_case in best
            ],
            degraded=found.degraded,
            held_back=[held.id for held in found.held_back],
            notes=() if best else (sentence("notes", "nothing_fits"),),
        )

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> Nearby:
        """Return findable cases of the app, or of none, that may be related to a content.

        Raise `StoreUnavailable` if the cases cannot be read.
        """
        wanted = SearchScope(
            owner_id=scope.owner_id, app_code=scope.app_code, or_without=("app_code",)
        )
        texts = (content.symptom_summary, content.root_cause, content.diagnosis)
        found = await self._search.search(texts, scope=wanted, kinds=("case",), limit=_POOL)
        known = await self._cases(found.hits, wanted)
        shown = [case for case in known.values() if case.is_findable]
        return Nearby(cases=shown[:limit], degraded=found.degraded)

    async def _cases(self, hits: Sequence[Hit], scope: Scope) -> Mapping[str, Case]:
        """Return the cases of hits by their ids, in the order of the hits."""
        ids = [hit.item.id for hit in hits]
        cases = await self._store.get(ids, scope.owner_id) if ids else []
        return {case.case_id: case for case in cases if scope.covers(case.scope)}


def _with_weak(hits: Sequence[Hit]) -> list[Hit]:
    """Put the weak hits below the others: a deliberate search shows what recall would not."""
    likely = [hit for hit in hits if not hit.is_weak]
    if not likely:
        return []
    least = min((hit.fit for hit in likely), default=1.0)
    below = [
        replace(hit, fit=hit.fit * min(1.0, least), why=f"weak match: {hit.why}")
        for hit in hits
        if hit.is_weak
    ]
    return [*likely, *below]


def _count(top_k: object) -> int:
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= MAX_TOP_K:
        raise CaseRefused("INVALID_TOP_K", f"`top_k` is a whole number from 1 to {MAX_TOP_K}.")
    return top_k
