"""Finds the case that a report tells once more, so that there is one of it; also one that search hides.

A rejected or stale case does not come back because it was reported again, with other figures even.
"""

from collections.abc import Sequence
from functools import partial

from memory.cases.case import Case, CaseCaller, CaseContent, Report
from memory.cases.content_merge import absorbed
from memory.cases.fingerprint import fingerprint_of, same_texts
from memory.cases.retry import Deciding
from memory.cases.store import MAX_KEPT_REPORTS, CaseStore
from memory.cases.structure import compare_structure
from memory.scope import Scope

_REPORTS = 10
"""Newest reports of a case whose surroundings a new one must not contradict."""


class CaseDedup:
    """Compares a report with the cases that are there."""

    def __init__(self, store: CaseStore, deciding: Deciding) -> None:
        self._store = store
        self._deciding = deciding

    async def same(
        self, content: CaseContent, scope: Scope, *, exclude: str | None = None
    ) -> Case | None:
        """Return the case of exactly this scope that says the same; `exclude`: the id of one that does not count.

        Few and general words may stand for another incident elsewhere, so the surroundings of the case and
        of its newest reports must not contradict those of `content`. Of several the first one that search
        shows is returned, then one that was judged, then the oldest.
        """
        fingerprint = await self._deciding.run(partial(fingerprint_of, content, scope))
        found = await self._store.by_fingerprint(fingerprint, scope.owner_id)
        for case in sorted(found, key=_precedence):
            if case.case_id == exclude:
                continue
            reports = await self._reports(case, _REPORTS)
            told = [case.content, *(report.content for report in reports)]
            if not any(_conflicts(content, other) for other in told):
                return case
        return None

    async def said_before(self, caller: CaseCaller, case: Case, content: CaseContent) -> bool:
        """Return whether this very conversation, or person, reported this before: that is no second report."""
        reports = await self._reports(case, MAX_KEPT_REPORTS)
        return await self._deciding.run(partial(_said_before, caller, case, content, reports))

    async def _reports(self, case: Case, limit: int) -> Sequence[Report]:
        return await self._store.reports(case.case_id, limit=limit) if case.reports else ()


def _said_before(
    caller: CaseCaller, case: Case, content: CaseContent, reports: Sequence[Report]
) -> bool:
    told_in = {caller.conversation_id, caller.root_id or caller.conversation_id}
    own = [report.content for report in reports if report.conversation_id in told_in]
    if caller.voter in case.authors:
        own.append(case.content)
    return any(same_texts(report, content) and not _adds(case, report, content) for report in own)


def _adds(case: Case, earlier: CaseContent, content: CaseContent) -> bool:
    """Return whether a repeated report knows more of the surroundings than the case and the earlier one."""
    known = absorbed(earlier.metadata, case.content.metadata)
    return absorbed(known, content.metadata) != known


def _conflicts(one: CaseContent, other: CaseContent) -> bool:
    return bool(compare_structure(one.metadata, other.metadata).conflicts)


def _precedence(case: Case) -> tuple[object, ...]:
    is_judged = case.lifecycle in {"rejected", "stale"}
    return (not case.is_findable, not is_judged, case.created_at, case.case_id)
