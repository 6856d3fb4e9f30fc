"""The book of cases: the one place that records and updates cases and counts their votes.

It reads what a decision needs, has the pure modules decide, and writes the decision in one
transaction.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

import anyio

from memory.background import Duties
from memory.cases.case import (
    Case,
    CaseCaller,
    CaseContent,
    ExportedCase,
    RelatedCase,
    Signal,
    Vote,
)
from memory.cases.case_writes import CaseChange
from memory.cases.changes import create_change, update_change, vote_change
from memory.cases.fingerprint import fingerprint_of
from memory.cases.input import SentCase, new_content, read_case
from memory.cases.relations import FindCandidates, relate
from memory.cases.results import (
    MAX_UNREVIEWED,
    CaseRefused,
    FeedbackAnswer,
    UpsertAnswer,
    sentence,
)
from memory.cases.similarity import SectionSimilarity, compare_sections
from memory.cases.store import SqlCaseStore
from memory.cases.structure import contradict
from memory.cases.unit_of_work import DecisionThreads, UnitOfWork, retry_on_conflict
from memory.cases.votes import tally, with_vote
from memory.clock import Now
from memory.errors import StoreConflict, StoreUnavailable
from memory.items.ids import opaque_id
from memory.items.scope import Scope

_CANDIDATES: Final = 20
"""Stored cases that a new one is compared with, section by section."""
_UNREVIEWED_S: Final = 1.0
"""Time limit of reading the reminder to judge; the write has succeeded by then."""

_log = logging.getLogger(__name__)


class CaseBook:
    """Writes cases."""

    def __init__(
        self,
        store: SqlCaseStore,
        candidates: FindCandidates,
        *,
        now: Now,
        known_secrets: Sequence[str] = (),
        new_id: Callable[[], str] = lambda: opaque_id("cas"),
        on_change: Callable[[], None] = lambda: None,
        duties: Duties | None = None,
    ) -> None:
        self._store = store
        self._candidates = candidates
        self._known_secrets = tuple(known_secrets)
        self._new_id = new_id
        self._work = UnitOfWork(store, now=now, on_change=on_change, duties=duties)
        self._threads = DecisionThreads()

    async def upsert(self, caller: CaseCaller, sent: object) -> UpsertAnswer:
        """Record a case, or update the case that it names; a case that is recorded already stays as
        it is.

        If cancelled, everything or nothing was changed; repeating the call changes nothing more.
        Raise `CaseRefused` if the input is not valid, or the caller has no case of that id;
        `StoreUnavailable` if nothing was written.
        """
        case = await self._threads.run(partial(read_case, sent, known_secrets=self._known_secrets))
        write = self._record if case.case_id is None else self._update
        async with self._work.turn_of(caller.scope.owner_id):
            answer = await retry_on_conflict(partial(write, caller, case))
        return replace(
            answer,
            stripped=case.stripped,
            redacted=case.redacted,
            notes=(*case.notes, *answer.notes),
            unreviewed_cases=await self._unreviewed(caller),
        )

    async def vote(
        self, caller: CaseCaller, case_id: str, *, helpful: bool | None, signal: Signal | None
    ) -> FeedbackAnswer:
        """Count the vote of the caller's conversation on a case; it replaces its earlier one.

        It judges what the case says now. Raise `CaseRefused` if the caller has no such case,
        `StoreUnavailable` if nothing was written.
        """
        vote = Vote(
            case_id=case_id,
            voter=caller.voter,
            helpful=helpful,
            signal=signal,
            app_code=caller.scope.app_code,
            environment=caller.scope.environment,
            at=self._work.present(),
        )
        async with self._work.turn_of(caller.scope.owner_id):
            answer = await retry_on_conflict(partial(self._vote, caller, vote))
        return replace(answer, unreviewed_cases=await self._unreviewed(caller))

    async def restore(self, exported: ExportedCase) -> bool:
        """Record an exported case under its id, or under a new id if somebody else has it.

        Return False if it, or a case that says the same, is recorded already. Raise `CaseRefused`
        if it is not valid.
        """
        read = partial(read_case, exported.sent, known_secrets=self._known_secrets)
        content, stated = new_content(await self._threads.run(read))
        scope = exported.scope
        caller = CaseCaller(scope=scope, by="person")
        async with self._work.turn_of(scope.owner_id):
            known = await self._store.get([exported.case_id], scope.owner_id)
            if known or await self._same(content, scope) is not None:
                return False
            for case_id in (exported.case_id, self._new_id()):
                create = partial(create_change, caller, case_id, content, stated)
                create = partial(create, at=exported.told_at, lifecycle=exported.lifecycle)
                with suppress(StoreConflict):
                    await self._create(create, content, scope)
                    return True
        raise CaseRefused("STORE_UNAVAILABLE", "The case could not be restored; try again.")

    async def _record(self, caller: CaseCaller, sent: SentCase) -> UpsertAnswer:
        content, stated = new_content(sent)
        same = await self._same(content, caller.scope)
        if same is not None:
            return UpsertAnswer(
                status="unchanged",
                case=same,
                similar_cases=await self._work.relations(caller, same),
            )
        create = partial(create_change, caller, self._new_id(), content, stated)
        create = partial(create, at=self._work.present())
        return await self._create(create, content, caller.scope)

    async def _create(
        self, create: Callable[..., CaseChange], content: CaseContent, scope: Scope
    ) -> UpsertAnswer:
        nearby = await self._candidates(content, scope, _CANDIDATES)
        relations = await self._relations(content, nearby.cases)
        change = await self._threads.run(partial(create, relations=relations))
        await self._work.write(change)
        missing = nearby.degraded
        return UpsertAnswer(
            status="created",
            case=change.case,
            similar_cases=tuple(relations),
            notes=(sentence("notes", "not_all", ", ".join(missing)),) if missing else (),
        )

    async def _update(self, caller: CaseCaller, sent: SentCase) -> UpsertAnswer:
        case = await self._work.case(caller, sent.case_id or "")
        votes = await self._work.votes(case)
        update = partial(update_change, caller, case, votes, sent, at=self._work.present())
        change = await self._threads.run(update)
        if change is None:
            return UpsertAnswer(
                status="unchanged",
                case=case,
                similar_cases=await self._work.relations(caller, case),
            )
        after = change.case
        nearby = await self._candidates(after.content, case.scope, _CANDIDATES + 1)
        others = [other for other in nearby.cases if other.case_id != case.case_id]
        related = await self._work.related_cases(case)
        relations = await self._relations(after.content, others, known=related)
        similar = await self._work.visible(caller, after, relations)
        await self._work.write(replace(change, relations=relations))
        return UpsertAnswer(status="updated", case=after, similar_cases=similar)

    async def _same(self, content: CaseContent, scope: Scope) -> Case | None:
        """Return the case of exactly this scope that says the same, hidden cases included.

        The same few words may describe another incident elsewhere, so the surroundings must not
        contradict.
        """
        fingerprint = await self._threads.run(partial(fingerprint_of, content, scope))
        found = await self._store.by_fingerprint(fingerprint, scope.owner_id)
        same = [case for case in found if not contradict(content.metadata, case.content.metadata)]
        return min(same, key=lambda case: not case.is_findable, default=None)

    async def _relations(
        self, content: CaseContent, found: Sequence[Case] = (), known: Sequence[Case] = ()
    ) -> list[RelatedCase]:
        """Compare a content with cases that were found and with those that it was related to
        before.
        """
        ids = {case.case_id for case in known}
        found = [case for case in found if case.case_id not in ids]
        return relate(
            content,
            await self._compared(content, found),
            known=await self._compared(content, known),
        )

    async def _compared(
        self, content: CaseContent, others: Sequence[Case]
    ) -> list[tuple[Case, SectionSimilarity]]:
        similar = await self._threads.run(partial(compare_sections, content, others))
        return list(zip(others, similar, strict=True))

    async def _vote(self, caller: CaseCaller, vote: Vote) -> FeedbackAnswer:
        case = await self._work.case(caller, vote.case_id)
        vote = replace(vote, at=self._work.present(), content_revision=case.content_revision)
        votes = await self._work.votes(case)
        decide = partial(vote_change, caller, case, votes, vote)
        change = await self._threads.run(decide)
        if change is None:
            return FeedbackAnswer(case=case, feedback=tally(case, votes))
        await self._work.write(change)
        return FeedbackAnswer(case=change.case, feedback=tally(change.case, with_vote(votes, vote)))

    async def _unreviewed(self, caller: CaseCaller) -> Sequence[str]:
        """Return the cases that the conversation should judge; none if they are late."""
        if caller.conversation_id is None:
            return ()
        with anyio.move_on_after(_UNREVIEWED_S):
            try:
                return await self._store.unreviewed(
                    caller.voter,
                    caller.scope.owner_id,
                    app_code=caller.scope.app_code,
                    limit=MAX_UNREVIEWED,
                )
            except StoreUnavailable:
                _log.warning("unreviewed_cases_not_read", exc_info=True)
                return ()
        _log.warning("unreviewed_cases_not_read_in_time")
        return ()
