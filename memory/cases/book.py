"""The book of cases: every way in which one is written, voted on or merged goes through here.

It reads, has the pure parts decide, and writes what they decided in one transaction. Where somebody
else was faster, it decides anew. What one owner sends is taken up one after another, so that the same
incident told by many at once becomes one case; votes wait only for other votes on the same case.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final, Protocol

from memory.cases.calling import sees
from memory.cases.case import Case, CaseCaller, CaseContent, RelatedCase, Report, Signal, Vote
from memory.cases.changes import may_rewrite, recorded, rewritten, taken_in, voted
from memory.cases.deciding import Deciding, InTurn, deciding_anew
from memory.cases.input import SentCase, new_content, read_case
from memory.cases.item import MAX_TOLD_REPORTS
from memory.cases.lifecycle import raised, restated
from memory.cases.merging import held_back, revised
from memory.cases.reading import MAX_RELATED, named_to
from memory.cases.relating import relate
from memory.cases.results import MAX_UNREVIEWED, CaseRefused, FeedbackAnswer, UpsertAnswer
from memory.cases.store import CaseChange, CaseStore
from memory.cases.telling import (
    NOT_REPLACED,
    NOT_STATED,
    of_merged,
    of_new,
    of_twin,
    of_updated,
    of_vote,
)
from memory.cases.telling_again import Compared, Comparer, TellingAgain
from memory.cases.votes import tally, with_vote
from memory.clock import Now, from_rfc3339, rfc3339
from memory.ids import new_case_id
from memory.scope import Scope

_CANDIDATES: Final = 20
"""So many cases are compared with a new one, section by section."""
_MAX_RELATED: Final = 50
"""Of a case that many others name; the nearest stay when it is rewritten."""


class Candidates(Protocol):
    """Where cases are found that may tell of the same."""

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> list[Case]:
        """Give the cases nearest to a content that the scope may see, best first."""
        ...


class CaseBook:
    """Writes cases."""

    def __init__(
        self,
        store: CaseStore,
        candidates: Candidates,
        comparer: Comparer,
        *,
        now: Now,
        known_secrets: Sequence[str] = (),
        new_id: Callable[[], str] = new_case_id,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._candidates = candidates
        self._comparer = comparer
        self._now = now
        self._known_secrets = tuple(known_secrets)
        self._new_id = new_id
        self._on_change = on_change
        self._deciding = Deciding()
        self._tellings = TellingAgain(store, comparer, self._deciding)
        self._writing = InTurn()
        self._voting = InTurn()

    async def upsert(self, caller: CaseCaller, sent: object) -> UpsertAnswer:
        """Record a case, or update the one that it names; a near-duplicate goes into what is there.

        Cancelled, it has changed everything or nothing; the same call again then changes no more.

        Raises:
            CaseRefused: it cannot be understood, or names a case that the caller has not.
            StoreUnavailable: nothing was written.
        """
        case = await self._deciding.run(partial(read_case, sent, known_secrets=self._known_secrets))
        write = self._record if case.case_id is None else self._revise
        async with self._writing.of(caller.scope.owner_id):
            answer = await deciding_anew(partial(write, caller, case))
        return replace(
            answer,
            stripped=(*case.stripped, *answer.stripped),
            redacted=case.redacted,
            notes=(*case.notes, *answer.notes),
            unreviewed_cases=await self._unreviewed(caller),
        )

    async def vote(
        self, caller: CaseCaller, case_id: str, *, helpful: bool | None, signal: Signal | None
    ) -> FeedbackAnswer:
        """Count what the caller's conversation thinks of a case; its last word replaces the one before.

        Raises:
            CaseRefused: the caller has no such case.
            StoreUnavailable: nothing was written.
        """
        vote = partial(self._vote, caller, case_id, helpful=helpful, signal=signal)
        async with self._voting.of(case_id):
            answer = await deciding_anew(vote)
        return replace(answer, unreviewed_cases=await self._unreviewed(caller))

    async def _record(self, caller: CaseCaller, sent: SentCase) -> UpsertAnswer:
        content, stated = new_content(sent)
        found = await self._candidates.candidates(content, caller.scope, _CANDIDATES)
        compared = await self._tellings.compare(content, caller.scope, found)
        if compared.same is not None:
            return await self._take_in(caller, compared.same, content, stated)
        relations = await self._deciding.run(partial(relate, content, found, compared.alike))
        case_id, at = self._new_id(), self._moment()
        change = await self._deciding.run(
            partial(recorded, caller, case_id, content, stated, at=at, relations=relations)
        )
        await self._write(change)
        return UpsertAnswer(
            status="created",
            case=change.case,
            similar_cases=tuple(relations),
            notes=of_new(change.case),
        )

    async def _take_in(
        self, caller: CaseCaller, case: Case, content: CaseContent, stated: float
    ) -> UpsertAnswer:
        votes = (await self._store.votes([case.case_id]))[case.case_id]
        known = (await self._store.related([case.case_id]))[case.case_id]
        similar = await self._named(caller, known)
        reports = await self._newest_reports(case)
        surer, at = raised(case, votes, stated), self._moment()
        if await self._tellings.said_before(caller, case, content):
            update = partial(rewritten, caller, case, votes, content=case.content, stated=surer)
            same = await self._deciding.run(partial(update, at=at, reports=reports))
            if same is not None:
                await self._write(same)
            after = case if same is None else same.case
            return UpsertAnswer(
                status="unchanged" if same is None else "updated",
                case=after,
                similar_cases=similar,
                notes=of_updated(case, after),
            )
        take = partial(taken_in, caller, case, content, at=at, reports=reports)
        change = await self._deciding.run(partial(take, votes=votes, stated=surer))
        await self._write(change)
        return UpsertAnswer(
            status="merged",
            case=change.case,
            similar_cases=similar,
            notes=of_merged(change.case, votes),
        )

    async def _revise(self, caller: CaseCaller, sent: SentCase) -> UpsertAnswer:
        case = await self._case(caller, sent.case_id or "")
        votes = (await self._store.votes([case.case_id]))[case.case_id]
        replaces = caller.by == "person" or caller.voter in case.authors
        held = () if replaces else held_back(case.content, sent)
        content = revised(case.content, sent, replaces=replaces)
        if content != case.content and not may_rewrite(caller, case):
            raise CaseRefused(
                "INVALID_CASE",
                "This case belongs to another scope;"
                " record what you found as a new case, or judge it.",
            )
        stated = restated(case, votes, sent.confidence, writer=caller.voter, by=caller.by)
        is_left_out = stated is None and sent.confidence not in {None, case.stated_confidence}
        stripped = (*(("confidence",) if is_left_out else ()), *held)
        notes = (*((NOT_STATED,) if is_left_out else ()), *((NOT_REPLACED,) if held else ()))
        update = partial(rewritten, caller, case, votes, content=content, stated=stated)
        reports, at = await self._newest_reports(case), self._moment()
        change = await self._deciding.run(partial(update, at=at, reports=reports))
        if change is None:
            known = (await self._store.related([case.case_id]))[case.case_id]
            return UpsertAnswer(
                status="unchanged",
                case=case,
                similar_cases=await self._named(caller, known),
                stripped=stripped,
                notes=notes or of_updated(case, case),
            )
        nearby = await self._candidates.candidates(content, case.scope, _CANDIDATES + 1)
        found = [one for one in nearby if one.case_id != case.case_id]
        compared = await self._tellings.compare(content, case.scope, found, but=case.case_id)
        twin = compared.same if content != case.content else None
        if twin is not None and twin.lifecycle in {"rejected", "stale"}:
            was = "was found wrong" if twin.lifecycle == "rejected" else "is stale"
            raise CaseRefused(
                "INVALID_CASE",
                f"This tells the same as {twin.case_id}, which {was};"
                " revise that one by its case_id, or say what else you found.",
            )
        relations = await self._relations_of(change.case, found, compared)
        similar = await self._named(caller, relations)
        await self._write(replace(change, relations=relations))
        return UpsertAnswer(
            status="updated",
            case=change.case,
            similar_cases=similar,
            stripped=stripped,
            notes=(*notes, *of_updated(case, change.case), *of_twin(twin)),
        )

    async def _write(self, change: CaseChange) -> None:
        await self._store.apply(change)
        self._on_change()

    async def _named(
        self, caller: CaseCaller, relations: Sequence[RelatedCase]
    ) -> tuple[RelatedCase, ...]:
        """Give those of a case's relations that the caller may know of."""
        ids = [one.case_id for one in relations]
        named = named_to(caller, await self._store.get(ids, caller.scope.owner_id))
        return tuple(one for one in relations if one.case_id in named)[:MAX_RELATED]

    async def _newest_reports(self, case: Case) -> Sequence[Report]:
        """Give those that are searched with a case; read after it, so that its revision guards them."""
        if not case.reports:
            return ()
        return await self._store.reports(case.case_id, limit=MAX_TOLD_REPORTS)

    async def _relations_of(
        self, case: Case, found: Sequence[Case], compared: Compared
    ) -> list[RelatedCase]:
        """Relate a rewritten case anew: to what is found now, and to what was related to it."""
        related = (await self._store.related([case.case_id]))[case.case_id][:_MAX_RELATED]
        known = await self._store.get([one.case_id for one in related], case.scope.owner_id)
        alike = await self._comparer.compare(case.content, known)

        def relations() -> list[RelatedCase]:
            ids = {one.case_id for one in known}
            each = zip(found, compared.alike, strict=True)
            new = [(one, similarity) for one, similarity in each if one.case_id not in ids]
            told = relate(case.content, [one for one, _ in new], [other for _, other in new])
            for one, similarity in zip(known, alike, strict=True):
                # each by itself: what many cases name must not forget all but five
                told += relate(case.content, [one], [similarity])
            return sorted(told, key=lambda one: (-one.score, one.case_id))

        return await self._deciding.run(relations)

    async def _vote(
        self, caller: CaseCaller, case_id: str, *, helpful: bool | None, signal: Signal | None
    ) -> FeedbackAnswer:
        case = await self._case(caller, case_id)
        votes = (await self._store.votes([case_id]))[case_id]
        vote = Vote(
            case_id=case_id,
            voter=caller.voter,
            helpful=helpful,
            signal=signal,
            app_code=caller.scope.app_code,
            environment=caller.scope.environment,
            at=self._moment(),
            content_revision=case.content_revision,
        )
        reports = await self._newest_reports(case)
        change = await self._deciding.run(
            partial(voted, caller, case, votes, vote, reports=reports)
        )
        if change is None:
            return FeedbackAnswer(case=case, feedback=tally(case, votes), notes=of_vote(case, None))
        await self._write(change)
        return FeedbackAnswer(
            case=change.case,
            feedback=tally(change.case, with_vote(votes, vote)),
            notes=of_vote(case, change.case),
        )

    async def _case(self, caller: CaseCaller, case_id: str) -> Case:
        found = await self._store.get([case_id], caller.scope.owner_id)
        if not found or not sees(caller, found[0]):
            raise CaseRefused(
                "CASE_NOT_FOUND",
                "There is no such case; use an id that a search or an upsert gave.",
            )
        return found[0]

    def _moment(self) -> datetime:
        """Tell the present as finely as it is kept, so that what is answered is what is stored."""
        return from_rfc3339(rfc3339(self._now()))

    async def _unreviewed(self, caller: CaseCaller) -> Sequence[str]:
        if caller.conversation_id is None:
            return ()
        return await self._store.unreviewed(
            caller.voter,
            caller.scope.owner_id,
            app_code=caller.scope.app_code,
            limit=MAX_UNREVIEWED,
        )
