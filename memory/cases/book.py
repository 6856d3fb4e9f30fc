"""The book of cases: every way in which one is written, voted on or merged goes through here.

It reads, has the pure parts decide, and writes what they decided in one transaction. Where somebody
else was faster, it decides anew. What one owner sends is taken up one after another, so that the same
incident told by many at once becomes one case; votes wait only for other votes on the same case, and for
a change of it that votes have outdone.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import anyio

from memory.cases.answer_notes import (
    of_both_sides,
    of_full,
    of_merged,
    of_new,
    of_twin,
    of_updated,
    of_vote,
)
from memory.cases.case import Case, CaseCaller, CaseContent, RelatedCase, Signal, Vote
from memory.cases.case_dedup import CaseDedup
from memory.cases.changes import may_change, owns, recorded, rewritten, taken_in, voted
from memory.cases.content_merge import absorbed, without_room
from memory.cases.input import SentCase, new_content, read_case
from memory.cases.lifecycle import raised
from memory.cases.nearby import Candidates
from memory.cases.relations import relate, relate_anew
from memory.cases.results import MAX_UNREVIEWED, CaseRefused, FeedbackAnswer, UpsertAnswer
from memory.cases.retry import Deciding, InTurn, deciding_anew
from memory.cases.revision import Revision, revision_of
from memory.cases.similarity import SectionComparer, SectionSimilarity
from memory.cases.store import CaseStore
from memory.cases.unit_of_work import UnitOfWork
from memory.cases.votes import tally, with_vote
from memory.clock import Now
from memory.errors import StoreConflict, StoreUnavailable
from memory.ids import new_case_id

_CANDIDATES: Final = 20
"""So many cases are compared with a new one, section by section."""
_REMINDING_S: Final = 1.0
"""So long the reminder to judge may take: what was written is answered."""

_log = logging.getLogger(__name__)


class CaseBook:
    """Writes cases."""

    def __init__(
        self,
        store: CaseStore,
        candidates: Candidates,
        comparer: SectionComparer,
        *,
        now: Now,
        known_secrets: Sequence[str] = (),
        new_id: Callable[[], str] = new_case_id,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._candidates = candidates
        self._comparer = comparer
        self._known_secrets = tuple(known_secrets)
        self._new_id = new_id
        self._settling = UnitOfWork(store, now=now, on_change=on_change)
        self._deciding = Deciding()
        self._dedup = CaseDedup(store, self._deciding)
        self._writing = InTurn()

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

        It judges the words that it was shown, and no others that somebody wrote meanwhile.

        Raises:
            CaseRefused: the caller has no such case.
            StoreUnavailable: nothing was written.
        """
        words = await self._settling.words_shown(caller, case_id)
        vote = partial(self._vote, caller, case_id, words, helpful=helpful, signal=signal)
        async with self._settling.voting_on(case_id):
            answer = await deciding_anew(vote)
        return replace(answer, unreviewed_cases=await self._unreviewed(caller))

    async def _record(self, caller: CaseCaller, sent: SentCase) -> UpsertAnswer:
        content, stated = new_content(sent)
        same = await self._dedup.same(content, caller.scope)
        if same is not None:
            return await self._take_in(caller, same, content, stated)
        nearby = await self._candidates.candidates(content, caller.scope, _CANDIDATES)
        similarities = await self._comparer.compare(content, nearby.cases)
        relations = await self._deciding.run(partial(relate, content, nearby.cases, similarities))
        case_id, at = self._new_id(), self._settling.moment()
        change = await self._deciding.run(
            partial(recorded, caller, case_id, content, stated, at=at, relations=relations)
        )
        await self._settling.write(change)
        return UpsertAnswer(
            status="created",
            case=change.case,
            similar_cases=tuple(relations),
            notes=of_new(change.case, nearby.degraded),
        )

    async def _take_in(
        self, caller: CaseCaller, same: Case, content: CaseContent, stated: float
    ) -> UpsertAnswer:
        """Put a telling into the case that it tells once more."""
        known = await self._settling.relations(caller, same)
        beside: Sequence[Case] = ()
        alike: Sequence[SectionSimilarity] = ()
        if _adds_to(same.content, content):
            beside = await self._settling.related_to(same)
            alike = await self._comparer.compare(same.content, beside)

        async def take(case: Case) -> UpsertAnswer:
            votes = await self._settling.votes(case)
            # what its surroundings would add plays no part where they are not the caller's to change
            new = content if may_change(caller, case, votes) else _around(content, case)
            if await self._dedup.said_before(caller, case, new):
                return await self._told_before(caller, case, votes, stated, known)
            reports, at = await self._settling.newest_reports(case), self._settling.moment()
            told = partial(taken_in, caller, case, content, at=at, reports=reports)
            surer = raised(case, votes, stated)
            change = await self._deciding.run(partial(told, votes=votes, stated=surer))
            full = without_room(case.content.metadata, replace(new.metadata, related_services=()))
            near = known
            if (now := change.case.content) != case.content:
                relations = await self._deciding.run(partial(relate_anew, now, beside, alike))
                change = replace(change, relations=relations)
                near = await self._settling.named(caller, relations)
            await self._settling.write(change)
            return UpsertAnswer(
                status="merged",
                case=change.case,
                similar_cases=near,
                notes=(*of_merged(change.case, votes, is_own=owns(caller, case)), *of_full(full)),
            )

        return await self._settling.settled(same, take)

    async def _told_before(
        self,
        caller: CaseCaller,
        case: Case,
        votes: Sequence[Vote],
        stated: float,
        known: Sequence[RelatedCase],
    ) -> UpsertAnswer:
        """Answer a telling that is no second report: it may be surer than before."""
        reports, at = await self._settling.newest_reports(case), self._settling.moment()
        surer = raised(case, votes, stated)
        update = partial(rewritten, caller, case, votes, content=case.content, stated=surer)
        change = await self._deciding.run(partial(update, at=at, reports=reports))
        if change is not None:
            await self._settling.write(change)
        after = case if change is None else change.case
        return UpsertAnswer(
            status="unchanged" if change is None else "updated",
            case=after,
            similar_cases=known,
            notes=of_updated(case, after),
        )

    async def _revise(self, caller: CaseCaller, sent: SentCase) -> UpsertAnswer:
        case = await self._settling.case(caller, sent.case_id or "")
        decided = await self._revision(caller, case, sent)
        if decided.change is None:
            return UpsertAnswer(
                status="unchanged",
                case=case,
                similar_cases=await self._settling.relations(caller, case),
                stripped=decided.stripped,
                notes=decided.notes or of_updated(case, case),
            )
        content = decided.content
        nearby = await self._candidates.candidates(content, case.scope, _CANDIDATES + 1)
        found = [each_case for each_case in nearby.cases if each_case.case_id != case.case_id]
        similarities = await self._comparer.compare(content, found)
        twin = (
            await self._dedup.same(content, case.scope, exclude=case.case_id)
            if content != case.content
            else None
        )
        if twin is not None and twin.lifecycle in {"rejected", "stale"}:
            was = "was found wrong" if twin.lifecycle == "rejected" else "is stale"
            raise CaseRefused(
                "INVALID_CASE",
                f"This tells the same as {twin.case_id}, which {was};"
                " revise that one by its case_id, or say what else you found.",
            )
        beside = await self._settling.related_to(case)
        alike = await self._comparer.compare(content, beside)
        relate_all = partial(relate_anew, content, beside, alike, found, similarities)
        relations = await self._deciding.run(relate_all)
        similar = await self._settling.named(caller, relations)

        async def write(now: Case) -> UpsertAnswer:
            revision = decided if now is case else await self._revision(caller, now, sent)
            if revision.change is None:
                raise StoreConflict("votes have made it one that the caller may not change")
            await self._settling.write(replace(revision.change, relations=relations))
            after = revision.change.case
            return UpsertAnswer(
                status="updated",
                case=after,
                similar_cases=similar,
                stripped=revision.stripped,
                notes=(*revision.notes, *of_updated(now, after), *of_twin(twin)),
            )

        return await self._settling.settled(case, write)

    async def _revision(self, caller: CaseCaller, case: Case, sent: SentCase) -> Revision:
        votes = await self._settling.votes(case)
        reports, at = await self._settling.newest_reports(case), self._settling.moment()
        decide = partial(revision_of, caller, case, votes, sent)
        return await self._deciding.run(partial(decide, at=at, reports=reports))

    async def _vote(
        self,
        caller: CaseCaller,
        case_id: str,
        words: int,
        *,
        helpful: bool | None,
        signal: Signal | None,
    ) -> FeedbackAnswer:
        case = await self._settling.case(caller, case_id)
        votes = await self._settling.votes(case)
        vote = Vote(
            case_id=case_id,
            voter=caller.voter,
            helpful=helpful,
            signal=signal,
            app_code=caller.scope.app_code,
            environment=caller.scope.environment,
            at=self._settling.moment(),
            content_revision=words,
        )
        reports = await self._settling.newest_reports(case)
        change = await self._deciding.run(
            partial(voted, caller, case, votes, vote, reports=reports)
        )
        if change is None:
            return FeedbackAnswer(
                case=case, feedback=tally(case, votes), notes=of_vote(case, None, words=words)
            )
        await self._settling.write(change)
        return FeedbackAnswer(
            case=change.case,
            feedback=tally(change.case, with_vote(votes, vote)),
            notes=(*of_both_sides(vote), *of_vote(case, change.case, words=words)),
        )

    async def _unreviewed(self, caller: CaseCaller) -> Sequence[str]:
        """List what is to be judged; nothing where that cannot be read, for by then all is written."""
        if caller.conversation_id is None:
            return ()
        with anyio.move_on_after(_REMINDING_S):
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


def _adds_to(known: CaseContent, told: CaseContent) -> bool:
    """Whether a telling knows more of the surroundings than a case."""
    return absorbed(known.metadata, told.metadata) != known.metadata


def _around(content: CaseContent, case: Case) -> CaseContent:
    """Give what is told with the surroundings of a case."""
    return replace(content, metadata=case.content.metadata)
