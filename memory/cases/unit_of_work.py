"""What is read and written of one case while something is decided on it, and whose turn it is."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import TypeVar

from memory.cases.caller import sees
from memory.cases.case import Case, CaseCaller, RelatedCase, Report, Vote
from memory.cases.case_reader import named_to
from memory.cases.item import MAX_TOLD_REPORTS
from memory.cases.results import MAX_TOLD_RELATED, CaseRefused
from memory.cases.retry import InTurn
from memory.cases.store import CaseChange, CaseStore
from memory.clock import Now, from_rfc3339, rfc3339
from memory.errors import StoreConflict

T = TypeVar("T")


class UnitOfWork:
    """Reads what decisions are made on, and writes them; safe to use from many tasks."""

    def __init__(self, store: CaseStore, *, now: Now, on_change: Callable[[], None]) -> None:
        self._store = store
        self._now = now
        self._on_change = on_change
        self._voting = InTurn()

    def voting_on(self, case_id: str) -> AbstractAsyncContextManager[None]:
        """Wait for one's turn to vote on a case, and hold it."""
        return self._voting.of(case_id)

    async def settled(self, case: Case, settle: Callable[[Case], Awaitable[T]]) -> T:
        """Decide on a case and write; where a vote was faster, once more while votes on it wait.

        Only for what is soon done: what takes long does not depend on votes, and is done before.

        Raises:
            StoreConflict: something else than votes has changed the case.
        """
        try:
            return await settle(case)
        except StoreConflict:
            async with self._voting.of(case.case_id):
                found = await self._store.get([case.case_id], case.scope.owner_id)
                if not found or _without_votes(found[0]) != _without_votes(case):
                    raise
                return await settle(found[0])

    async def case(self, caller: CaseCaller, case_id: str) -> Case:
        """Give the caller's case.

        Raises:
            CaseRefused: they have no such case.
        """
        found = await self._store.get([case_id], caller.scope.owner_id)
        if not found or not sees(caller, found[0]):
            raise CaseRefused(
                "CASE_NOT_FOUND",
                "There is no such case; use an id that a search or an upsert gave.",
            )
        return found[0]

    async def words_shown(self, caller: CaseCaller, case_id: str) -> int:
        """Tell which words of a case the caller judges: what its conversation was shown, else the present ones.

        A person looks at what is there.

        Raises:
            CaseRefused: they have no such case.
        """
        case = await self.case(caller, case_id)
        if caller.by == "person":
            return case.content_revision
        shown = await self._store.shown_words(caller.voter, case_id)
        return case.content_revision if shown is None else min(shown, case.content_revision)

    async def votes(self, case: Case) -> Sequence[Vote]:
        """Give the votes on a case, oldest first."""
        return (await self._store.votes([case.case_id]))[case.case_id]

    async def newest_reports(self, case: Case) -> Sequence[Report]:
        """Give those that are searched with a case; read after it, so that its revision guards them."""
        if not case.reports:
            return ()
        return await self._store.reports(case.case_id, limit=MAX_TOLD_REPORTS)

    async def relations(self, caller: CaseCaller, case: Case) -> tuple[RelatedCase, ...]:
        """Give those relations of a case that the caller may know of, the nearest few."""
        return await self.named(caller, (await self._store.related([case.case_id]))[case.case_id])

    async def named(
        self, caller: CaseCaller, relations: Sequence[RelatedCase]
    ) -> tuple[RelatedCase, ...]:
        """Give those of some relations that the caller may know of, the first few."""
        ids = [relation.case_id for relation in relations]
        named = named_to(caller, await self._store.get(ids, caller.scope.owner_id))
        return tuple(relation for relation in relations if relation.case_id in named)[
            :MAX_TOLD_RELATED
        ]

    async def related_to(self, case: Case) -> Sequence[Case]:
        """Give the cases that a case is related to."""
        related = (await self._store.related([case.case_id]))[case.case_id]
        return await self._store.get(
            [relation.case_id for relation in related], case.scope.owner_id
        )

    async def write(self, change: CaseChange) -> None:
        """Write a change, and tell of it."""
        await self._store.apply(change)
        self._on_change()

    def moment(self) -> datetime:
        """Tell the present as finely as it is kept, so that what is answered is what is stored."""
        return from_rfc3339(rfc3339(self._now()))


def _without_votes(case: Case) -> tuple[object, ...]:
    return (case.content, case.reports)
