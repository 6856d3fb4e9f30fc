"""Reads whole cases by their ids, hidden ones included: with votes, relations and history."""

from collections.abc import Sequence
from typing import Final

from memory.cases.caller import sees
from memory.cases.case import CaseCaller
from memory.cases.markdown import render_markdown
from memory.cases.results import WholeCase
from memory.cases.store import SqlCaseStore
from memory.cases.unit_of_work import note_shown, visible
from memory.cases.votes import tally

MAX_HISTORY: Final = 200


class CaseReader:
    """Reads cases."""

    def __init__(self, store: SqlCaseStore) -> None:
        self._store = store

    async def whole(
        self, caller: CaseCaller, case_ids: Sequence[str]
    ) -> tuple[list[WholeCase], list[str]]:
        """Return the caller's cases in the order of the distinct ids, and the ids that are not
        theirs.

        Records that the caller's conversation was shown the cases. Raise `StoreUnavailable` if they
        cannot be read.
        """
        found = await self._store.get(case_ids, caller.scope.owner_id)
        cases = [case for case in found if sees(caller, case)]
        ids = [case.case_id for case in cases]
        votes = await self._store.votes(ids)
        related = await visible(self._store, caller, cases, await self._store.related(ids))
        whole: list[WholeCase] = []
        for case in cases:
            near = related[case.case_id]
            feedback = tally(case, votes[case.case_id])
            history = await self._store.history(case.case_id, limit=MAX_HISTORY)
            whole.append(
                WholeCase(
                    case=case,
                    feedback=feedback,
                    similar_cases=tuple(relation for relation, _ in near),
                    history=history,
                    markdown=render_markdown(case, feedback, related=near),
                )
            )
        await note_shown(self._store, caller, cases)
        return whole, [case_id for case_id in case_ids if case_id not in ids]
