"""Finds the case that a telling tells once more, so that there is one of it; also one that search hides."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from memory.cases.case import Case, CaseCaller, CaseContent, Report
from memory.cases.deciding import Deciding
from memory.cases.item import fingerprint_of, likeness_of
from memory.cases.merging import united
from memory.cases.own_telling import own_telling
from memory.cases.sameness import are_at_odds, is_same
from memory.cases.sections import SectionSimilarity, compared_chars
from memory.cases.store import MAX_KEPT_REPORTS, CaseStore
from memory.cases.structure import compare_structure
from memory.scope import Scope

_HIDDEN: Final = 500
"""So many of those that search does not show are looked through for the nearest."""
_JUDGED: Final = 20
_UNSURE: Final = 10
"""So many of those that were found wrong or stale, and of unsure drafts, are compared section by section."""
_NEAR_CHARS: Final = 300
"""Of a root cause, and of a symptom: enough to put the nearest of many first."""
_PIECE: Final = 3
_REPORTS: Final = 10
"""So many of a case's newest reports a telling must not be at odds with."""
MAX_LAID_BESIDE_CHARS: Final = 30_000
"""Of reports that one telling is laid beside; ten of ordinary length, of the longest two."""


class Comparer(Protocol):
    """What tells how alike cases are; see `SectionComparer`."""

    async def compare(
        self, content: CaseContent, others: Sequence[Case]
    ) -> list[SectionSimilarity]:
        """Say how alike a content and each of the cases are, in their order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a telling came to beside the cases that are there."""

    same: Case | None
    """The case that it tells once more."""
    alike: Sequence[SectionSimilarity]
    """How alike it is to each of the cases that were found, in their order."""


class TellingAgain:
    """Lays a telling beside what is there."""

    def __init__(self, store: CaseStore, comparer: Comparer, deciding: Deciding) -> None:
        self._store = store
        self._comparer = comparer
        self._deciding = deciding

    async def compare(
        self, content: CaseContent, scope: Scope, found: Sequence[Case], *, but: str | None = None
    ) -> Compared:
        """Say which case of exactly this scope tells the same; `but`: the id of one that does not count."""
        hidden = [one for one in await self._hidden_like(content, scope) if one.case_id != but]
        alike = await self._comparer.compare(content, found)
        same = await self._told_exactly(content, scope, but)
        if same is None:
            # by themselves, so that no number of long cases that are found keeps them from being compared
            hidden_alike = await self._comparer.compare(content, hidden)
            others, similar = [*found, *hidden], [*alike, *hidden_alike]
            same = await self._told_alike(content, others, similar, scope)
        return Compared(same=same, alike=alike)

    async def said_before(self, caller: CaseCaller, case: Case, content: CaseContent) -> bool:
        """Whether this very conversation, or person, told exactly this before: that is no second report."""
        known = case.content.metadata
        if united(known, content.metadata) != known:
            return False
        reports = await self._store.reports(case.case_id, limit=MAX_KEPT_REPORTS)
        return await self._deciding.run(partial(_said_before, caller, case, content, reports))

    async def _told_exactly(
        self, content: CaseContent, scope: Scope, but: str | None
    ) -> Case | None:
        """Find what says exactly this; also what was found wrong since: it does not come back so.

        Few and general words may stand for another incident elsewhere: what surrounds it tells, also beside
        what was merged, for the case itself names the surroundings of all of them together.
        """
        fingerprint = await self._deciding.run(partial(fingerprint_of, content, scope))
        found = await self._store.by_fingerprint(fingerprint, scope.owner_id)
        same = [
            one for one in found if one.case_id != but and not _elsewhere(content, own_telling(one))
        ]
        for one in sorted(same, key=_first_of_the_same):
            reports = await self._reports(one)
            if not any(_elsewhere(content, report.content) for report in reports):
                return one
        return None

    async def _hidden_like(self, content: CaseContent, scope: Scope) -> Sequence[Case]:
        """Find what may tell of the same and is not shown: what was found wrong does not come back by other numbers."""
        likeness = await self._deciding.run(partial(likeness_of, content, scope))
        hidden = await self._store.hidden_like(likeness, scope.owner_id, limit=_HIDDEN)
        return await self._deciding.run(partial(nearest, content, hidden))

    async def _told_alike(
        self,
        content: CaseContent,
        candidates: Sequence[Case],
        similarities: Sequence[SectionSimilarity],
        scope: Scope,
    ) -> Case | None:
        """Find the case that is told once more; one that reports went into which this contradicts is none."""
        found = await self._deciding.run(
            partial(_same_of, content, candidates, similarities, scope)
        )
        left = MAX_LAID_BESIDE_CHARS
        for one in found:
            reports = fitting(await self._reports(one), left)
            if one.reports and not reports:
                return None  # nothing is left to look at them: better a case too many
            if not await self._deciding.run(
                partial(_contradicts, content, own_telling(one), reports)
            ):
                return one
            left -= sum(compared_chars(report.content) for report in reports)
        return None

    async def _reports(self, case: Case) -> Sequence[Report]:
        return await self._store.reports(case.case_id, limit=_REPORTS) if case.reports else ()


def _said_before(
    caller: CaseCaller, case: Case, content: CaseContent, reports: Sequence[Report]
) -> bool:
    wanted = fingerprint_of(content, case.scope)
    if wanted == fingerprint_of(case.content, case.scope) and caller.voter in case.authors:
        return True
    told_in = {caller.conversation_id, caller.root_id or caller.conversation_id}
    return any(
        one.conversation_id in told_in and fingerprint_of(one.content, case.scope) == wanted
        for one in reports
    )


def nearest(content: CaseContent, hidden: Sequence[Case]) -> Sequence[Case]:
    """Give the nearest; what was judged first, so that no number of unsure drafts stands before it."""
    if len(hidden) <= _UNSURE:
        return hidden
    told = _pieces_of(content)
    near = sorted(hidden, key=lambda one: -_overlap(told, _pieces_of(one.content)))
    judged = [one for one in near if one.lifecycle in {"rejected", "stale"}]
    unsure = [one for one in near if one.lifecycle not in {"rejected", "stale"}]
    return [*judged[:_JUDGED], *unsure[:_UNSURE]]


def _pieces_of(content: CaseContent) -> frozenset[str]:
    """Cut letters, in threes, from where a root cause and a symptom begin: rough, but quick for hundreds."""
    told = f"{content.root_cause[:_NEAR_CHARS]} {content.symptom_summary[:_NEAR_CHARS]}"
    letters = "".join(filter(str.isalpha, told.casefold()))
    return frozenset(letters[at : at + _PIECE] for at in range(len(letters) - _PIECE + 1))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def _same_of(
    content: CaseContent,
    candidates: Sequence[Case],
    similarities: Sequence[SectionSimilarity],
    scope: Scope,
) -> list[Case]:
    found = [
        case
        for case, similarity in zip(candidates, similarities, strict=True)
        if case.scope == scope and is_same(content, case.content, similarity)
    ]
    return sorted(found, key=_first_of_the_same)


def _elsewhere(one: CaseContent, other: CaseContent) -> bool:
    return bool(compare_structure(one.metadata, other.metadata).conflicts)


def _first_of_the_same(case: Case) -> tuple[object, ...]:
    """Put first what can be found, then what was judged; of several the oldest."""
    is_unsure = case.lifecycle not in {"rejected", "stale"}
    return (not case.is_findable, is_unsure, case.created_at, case.case_id)


def fitting(reports: Sequence[Report], chars: int) -> Sequence[Report]:
    """Give the newest that so many characters hold, oldest first."""
    fitting: list[Report] = []
    for report in reversed(reports):
        chars -= compared_chars(report.content)
        if chars < 0:
            break
        fitting.append(report)
    return fitting[::-1]


def _contradicts(content: CaseContent, own: CaseContent, reports: Sequence[Report]) -> bool:
    told = (own, *(one.content for one in reversed(reports)))
    return any(are_at_odds(content, one) for one in told)
