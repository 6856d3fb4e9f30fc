"""Reads cases whole: with their votes, relations, history, reports, and as Markdown."""

from collections.abc import Iterable, Sequence
from typing import Final

from memory.cases.caller import sees
from memory.cases.case import Case, CaseCaller, RelatedCase
from memory.cases.markdown import Rendered, render_markdown
from memory.cases.noting import note_shown
from memory.cases.results import MAX_TOLD_RELATED, WholeCase
from memory.cases.store import CaseStore
from memory.cases.votes import tally

MAX_HISTORY: Final = 200
MAX_REPORTS: Final = 10


def named_to(caller: CaseCaller, cases: Iterable[Case]) -> dict[str, Case]:
    """Give by their ids those that may be named to the caller as related ones.

    Of its app or of none, and neither found wrong nor stale.
    """
    return {
        case.case_id: case
        for case in cases
        if sees(caller, case) and case.lifecycle in {"draft", "accepted"}
    }


class CaseReader:
    """Gives cases by their ids, also those that search does not show."""

    def __init__(self, store: CaseStore) -> None:
        self._store = store

    async def whole(
        self, caller: CaseCaller, case_ids: Sequence[str]
    ) -> tuple[list[WholeCase], list[str]]:
        """Give the caller's cases in the order of the distinct ids, and the ids of those that they have not.

        The caller's conversation counts as having been shown them.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        found = await self._store.get(case_ids, caller.scope.owner_id)
        cases = [hit for hit in found if sees(caller, hit)]
        whole = await self._with_all(caller, cases)
        await note_shown(self._store, caller, cases)
        there = {case.case_id for case in cases}
        return whole, [case_id for case_id in case_ids if case_id not in there]

    async def _with_all(self, caller: CaseCaller, cases: Sequence[Case]) -> list[WholeCase]:
        ids = [case.case_id for case in cases]
        votes = await self._store.votes(ids)
        related = await self._related(caller, ids)
        whole: list[WholeCase] = []
        for case in cases:
            feedback = tally(case, votes[case.case_id])
            reports = await self._store.reports(case.case_id, limit=MAX_REPORTS)
            near = related[case.case_id]
            history = await self._store.history(case.case_id, limit=MAX_HISTORY)
            length = await self._store.history_length(case.case_id)
            rendered = Rendered(case=case, feedback=feedback, related=near, reports=reports)
            whole.append(
                WholeCase(
                    case=case,
                    feedback=feedback,
                    similar_cases=tuple(relation for relation, _ in near),
                    history=history,
                    history_left_out=max(0, length - len(history)),
                    reports=reports,
                    markdown=render_markdown(rendered),
                )
            )
        return whole

    async def _related(
        self, caller: CaseCaller, case_ids: Sequence[str]
    ) -> dict[str, list[tuple[RelatedCase, Case]]]:
        """Give the relations of each, with the other ends; without those that were found wrong or stale."""
        known = await self._store.related(case_ids)
        others = {relation.case_id for relations in known.values() for relation in relations}
        found = await self._store.get(sorted(others), caller.scope.owner_id)
        shown = named_to(caller, found)
        return {
            case_id: [
                (relation, shown[relation.case_id])
                for relation in each
                if relation.case_id in shown
            ][:MAX_TOLD_RELATED]
            for case_id, each in known.items()
        }
