"""Finds the case that a report repeats, hidden ones included.

A rejected or stale case therefore cannot return because it is reported again with other figures.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from memory.cases.case import Case, CaseCaller, CaseContent, Report
from memory.cases.content_merge import absorbed
from memory.cases.fingerprint import fingerprint_of, same_texts
from memory.cases.store import MAX_KEPT_REPORTS, CaseStore
from memory.cases.structure import compare_structure
from memory.cases.unit_of_work import DecisionThreads, UnitOfWork
from memory.scope import Scope

_COMPARED_REPORTS: Final = 10
"""Newest reports of a case whose surroundings a new one must not contradict."""


class CaseDedup:
    """Compares a report with the stored cases."""

    def __init__(self, store: CaseStore, work: UnitOfWork, threads: DecisionThreads) -> None:
        self._store = store
        self._work = work
        self._threads = threads

    async def same(
        self, content: CaseContent, scope: Scope, *, exclude: str | None = None
    ) -> Case | None:
        """Return the case of exactly this scope that says the same; `exclude` is an id to ignore.

        The same few words may describe another incident elsewhere, so the surroundings of the case
        and of its newest reports must not contradict those of `content`. A case that search shows
        precedes one that was judged, which precedes the oldest.
        """
        fingerprint = await self._threads.run(partial(fingerprint_of, content, scope))
        found = await self._store.by_fingerprint(fingerprint, scope.owner_id)
        for case in sorted(found, key=_precedence):
            if case.case_id == exclude:
                continue
            reports = await self._work.reports(case, _COMPARED_REPORTS)
            known = [case.content, *(report.content for report in reports)]
            if not any(_conflicts(content, other) for other in known):
                return case
        return None

    async def said_before(self, caller: CaseCaller, case: Case, content: CaseContent) -> bool:
        """Return whether the caller's own conversation, or person, already reported this."""
        reports = await self._work.reports(case, MAX_KEPT_REPORTS)
        return await self._threads.run(partial(_said_before, caller, case, content, reports))


def _said_before(
    caller: CaseCaller, case: Case, content: CaseContent, reports: Sequence[Report]
) -> bool:
    conversations = {caller.conversation_id, caller.root_id or caller.conversation_id}
    own = [report.content for report in reports if report.conversation_id in conversations]
    if caller.voter in case.authors:
        own.append(case.content)
    return any(same_texts(known, content) and not _adds(case, known, content) for known in own)


def _adds(case: Case, earlier: CaseContent, content: CaseContent) -> bool:
    """Return whether a repeated report knows more of the surroundings than the case and the earlier
    one.
    """
    known = absorbed(earlier.metadata, case.content.metadata)
    return absorbed(known, content.metadata) != known


def _conflicts(one: CaseContent, other: CaseContent) -> bool:
    return bool(compare_structure(one.metadata, other.metadata).conflicts)


def _precedence(case: Case) -> tuple[object, ...]:
    is_judged = case.lifecycle in {"rejected", "stale"}
    return (not case.is_findable, not is_judged, case.created_at, case.case_id)
