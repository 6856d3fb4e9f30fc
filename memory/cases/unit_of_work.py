"""Reads what one decision about a case needs, and writes its result.

Writes of one owner run one after another, so that an incident reported by many agents at once
becomes one case. Another process may still be faster: its write raises `StoreConflict`, and the
decision is made again.
"""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from memory.background import Duties, NoOthers
from memory.cases.caller import sees
from memory.cases.case import Case, CaseCaller, RelatedCase, Vote
from memory.cases.case_writes import CaseChange
from memory.cases.relations import with_structure
from memory.cases.results import MAX_TOLD_RELATED, CaseRefused, sentence
from memory.cases.store import SqlCaseStore
from memory.clock import Now, from_rfc3339, rfc3339
from memory.errors import StoreConflict, StoreUnavailable

_log = logging.getLogger(__name__)

_MAX_ATTEMPTS: Final = 8
_MAX_THREADS: Final = 2
_NOTE_SHOWN_S: Final = 0.5

T = TypeVar("T")


class DecisionThreads:
    """Runs pure decisions in worker threads, a few at a time; safe to use from many tasks."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(_MAX_THREADS)

    async def run(self, decide: Callable[[], T]) -> T:
        """Return the function's result. If cancelled, return at once and discard the result."""
        return await anyio.to_thread.run_sync(decide, abandon_on_cancel=True, limiter=self._limiter)


async def retry_on_conflict(attempt: Callable[[], Awaitable[T]]) -> T:
    """Return the attempt's result; repeat it while another process changes the case in between.

    Raise `CaseRefused` if every attempt conflicted.
    """
    for _ in range(_MAX_ATTEMPTS):
        try:
            return await attempt()
        except StoreConflict:
            await anyio.lowlevel.checkpoint()
    raise CaseRefused("STORE_UNAVAILABLE", "Too many changes to this case at once; try again.")


async def note_shown(store: SqlCaseStore, caller: CaseCaller, cases: Sequence[Case]) -> None:
    """Record that the caller's conversation was shown these cases, so that it can be asked to judge
    them.

    Best effort: a slow or broken store is logged, and the caller still gets the cases.
    """
    if caller.conversation_id is None or not cases:
        return
    with anyio.move_on_after(_NOTE_SHOWN_S) as timeout:
        try:
            await store.note_shown(caller.voter, [case.case_id for case in cases])
        except StoreUnavailable:
            _log.warning("shown_cases_not_noted", exc_info=True)
    if timeout.cancelled_caught:
        _log.warning("shown_cases_not_noted_in_time")


async def visible(
    store: SqlCaseStore,
    caller: CaseCaller,
    cases: Sequence[Case],
    relations: Mapping[str, Sequence[RelatedCase]],
) -> dict[str, list[tuple[RelatedCase, Case]]]:
    """Return, by the id of each case, the first few of its relations with the other case.

    Only those that may be named to the caller: of its app or of none, neither rejected nor stale.
    """
    ids = sorted({related.case_id for known in relations.values() for related in known})
    others = {
        case.case_id: case
        for case in await store.get(ids, caller.scope.owner_id)
        if sees(caller, case) and case.lifecycle in {"draft", "accepted"}
    }
    return {
        case.case_id: [
            (
                with_structure(relation, case.content, others[relation.case_id]),
                others[relation.case_id],
            )
            for relation in relations[case.case_id]
            if relation.case_id in others
        ][:MAX_TOLD_RELATED]
        for case in cases
    }


class UnitOfWork:
    """Reads and writes single cases; safe to use from many tasks.

    A method that is given the id of no case of the caller raises `CaseRefused`.
    """

    def __init__(
        self,
        store: SqlCaseStore,
        *,
        now: Now,
        on_change: Callable[[], None],
        duties: Duties | None = None,
    ) -> None:
        self._store = store
        self._now = now
        self._on_change = on_change
        self._duties = duties or NoOthers()
        self._locks: dict[str, anyio.Lock] = {}
        self._users: Counter[str] = Counter()

    @asynccontextmanager
    async def turn_of(self, owner_id: str) -> AsyncIterator[None]:
        """Hold the owner's lock while the block runs; waiters get it in their order."""
        lock = self._locks.setdefault(owner_id, anyio.Lock())
        self._users[owner_id] += 1
        try:
            async with lock, self._duties.alone(f"cases of {owner_id}"):
                yield
        finally:
            self._users[owner_id] -= 1
            if not self._users[owner_id]:
                del self._users[owner_id], self._locks[owner_id]

    async def case(self, caller: CaseCaller, case_id: str) -> Case:
        """Return the caller's case."""
        found = await self._store.get([case_id], caller.scope.owner_id)
        if not found or not sees(caller, found[0]):
            raise CaseRefused("CASE_NOT_FOUND", sentence("refusals", "no_such_case"))
        return found[0]

    async def votes(self, case: Case) -> Sequence[Vote]:
        """Return the votes on a case, oldest first."""
        return (await self._store.votes([case.case_id]))[case.case_id]

    async def relations(self, caller: CaseCaller, case: Case) -> tuple[RelatedCase, ...]:
        """Return the nearest relations of a case that the caller may see."""
        related = (await self._store.related([case.case_id]))[case.case_id]
        return await self.visible(caller, case, related)

    async def visible(
        self, caller: CaseCaller, case: Case, relations: Sequence[RelatedCase]
    ) -> tuple[RelatedCase, ...]:
        """Return the first few of a case's relations that the caller may see."""
        seen = await visible(self._store, caller, [case], {case.case_id: relations})
        return tuple(relation for relation, _ in seen[case.case_id])

    async def related_cases(self, case: Case) -> Sequence[Case]:
        """Return the cases that a case is related to."""
        related = (await self._store.related([case.case_id]))[case.case_id]
        ids = [relation.case_id for relation in related]
        return await self._store.get(ids, case.scope.owner_id)

    async def write(self, change: CaseChange) -> None:
        """Write a change and announce it."""
        await self._store.apply(change)
        self._on_change()

    def present(self) -> datetime:
        """Return the present, as precise as it is stored."""
        return from_rfc3339(rfc3339(self._now()))
