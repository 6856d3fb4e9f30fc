"""The book of cases: every way in which one is written, voted on or merged goes through here.

It reads, has the pure parts decide, and writes what they decided in one transaction. Where somebody
else was faster, it decides anew. What one owner sends is taken up one after another, so that the same
incident told by many at once becomes one case; votes wait only for other votes on the same case.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final, Protocol, TypeVar

import anyio
import anyio.to_thread

from memory.cases.calling import sees
from memory.cases.case import Case, CaseCaller, CaseContent, RelatedCase, Report, Signal, Vote
from memory.cases.changes import may_rewrite, recorded, rewritten, taken_in, voted
from memory.cases.input import SentCase, new_content, read_case
from memory.cases.item import MAX_TOLD_REPORTS, fingerprint_of, likeness_of
from memory.cases.lifecycle import restated
from memory.cases.merging import revised, united
from memory.cases.reading import MAX_RELATED, named_to
from memory.cases.relating import relate
from memory.cases.results import MAX_UNREVIEWED, CaseRefused, FeedbackAnswer, UpsertAnswer
from memory.cases.sameness import is_same
from memory.cases.sections import SectionSimilarity
from memory.cases.store import MAX_KEPT_REPORTS, CaseStore
from memory.cases.structure import compare_structure
from memory.cases.telling import NOT_STATED, of_merged, of_new, of_updated, of_vote
from memory.cases.votes import tally, with_vote
from memory.cases.wording import telling_words
from memory.clock import Now, from_rfc3339, rfc3339
from memory.errors import StoreConflict
from memory.ids import new_case_id
from memory.scope import Scope

_TRIES: Final = 8
"""So often somebody else may be faster before a call is given up."""
_CANDIDATES: Final = 20
"""So many cases are compared with a new one, section by section."""
_HIDDEN: Final = 60
"""So many of those that search does not show are looked through for the nearest."""
_MAX_RELATED: Final = 50
"""Of a case that many others name; the nearest stay when it is rewritten."""

T = TypeVar("T")


class Candidates(Protocol):
    """Where cases are found that may tell of the same."""

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> list[Case]:
        """Give the cases nearest to a content that the scope may see, best first."""
        ...


class Comparer(Protocol):
    """What tells how alike cases are; see `SectionComparer`."""

    async def compare(
        self, content: CaseContent, others: Sequence[Case]
    ) -> list[SectionSimilarity]:
        """Say how alike a content and each of the cases are, in their order."""
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
        self._writing = _InTurn()
        self._voting = _InTurn()

    async def upsert(self, caller: CaseCaller, sent: object) -> UpsertAnswer:
        """Record a case, or update the one that it names; a near-duplicate goes into what is there.

        Cancelled, it has changed everything or nothing; the same call again then changes no more.

        Raises:
            CaseRefused: it cannot be understood, or names a case that the caller has not.
            StoreUnavailable: nothing was written.
        """
        case = await anyio.to_thread.run_sync(
            partial(read_case, sent, known_secrets=self._known_secrets), abandon_on_cancel=True
        )
        write = self._record if case.case_id is None else self._revise
        async with self._writing.of(caller.scope.owner_id):
            answer = await _deciding_anew(partial(write, caller, case))
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
            answer = await _deciding_anew(vote)
        return replace(answer, unreviewed_cases=await self._unreviewed(caller))

    async def _record(self, caller: CaseCaller, sent: SentCase) -> UpsertAnswer:
        content, stated = new_content(sent)
        found = await self._candidates.candidates(content, caller.scope, _CANDIDATES)
        others = [*found, *await self._hidden_like(content, caller)]
        alike = await self._comparer.compare(content, others)
        same = await self._told_exactly(content, caller) or _told_alike(
            content, others, alike, caller.scope
        )
        if same is not None:
            return await self._take_in(caller, same, content)
        relations = relate(content, found, alike[: len(found)])
        change = recorded(
            caller, self._new_id(), content, stated, at=self._moment(), relations=relations
        )
        await self._store.apply(change)
        self._on_change()
        return UpsertAnswer(
            status="created",
            case=change.case,
            similar_cases=tuple(relations),
            notes=of_new(change.case),
        )

    async def _told_exactly(self, content: CaseContent, caller: CaseCaller) -> Case | None:
        """Find what says exactly this; also what was found wrong since: it does not come back so.

        Few and general words may stand for another incident elsewhere: what surrounds it tells.
        """
        found = await self._store.by_fingerprint(
            fingerprint_of(content, caller.scope), caller.scope.owner_id
        )
        same = [
            one
            for one in found
            if not compare_structure(content.metadata, one.content.metadata).conflicts
        ]
        return max(same, key=lambda one: one.is_findable, default=None)

    async def _hidden_like(self, content: CaseContent, caller: CaseCaller) -> list[Case]:
        """Find what may tell of the same and is not shown by search: it does not come back by other numbers."""
        likeness, owner_id = likeness_of(content, caller.scope), caller.scope.owner_id
        hidden = await self._store.hidden_like(likeness, owner_id, limit=_HIDDEN)
        if len(hidden) > _CANDIDATES:
            words = {*telling_words(content.root_cause)}
            hidden.sort(key=lambda one: -len(words & {*telling_words(one.content.root_cause)}))
        return hidden[:_CANDIDATES]

    async def _take_in(self, caller: CaseCaller, case: Case, content: CaseContent) -> UpsertAnswer:
        known = (await self._store.related([case.case_id]))[case.case_id]
        similar = await self._named(caller, known)
        if await self._said_before(caller, case, content):
            return UpsertAnswer(
                status="unchanged",
                case=case,
                similar_cases=similar,
                notes=of_updated(case, case),
            )
        reports = await self._newest_reports(case)
        change = taken_in(caller, case, content, at=self._moment(), reports=reports)
        await self._store.apply(change)
        self._on_change()
        return UpsertAnswer(
            status="merged",
            case=change.case,
            similar_cases=similar,
            notes=of_merged(change.case),
        )

    async def _said_before(self, caller: CaseCaller, case: Case, content: CaseContent) -> bool:
        """Whether this very conversation told exactly this before: a call made twice is no second report."""
        known = case.content.metadata
        if caller.conversation_id is None or united(known, content.metadata) != known:
            return False
        wanted = fingerprint_of(content, case.scope)
        if wanted == fingerprint_of(case.content, case.scope) and caller.voter in case.authors:
            return True
        reports = await self._store.reports(case.case_id, limit=MAX_KEPT_REPORTS)
        return any(
            one.conversation_id == caller.conversation_id
            and fingerprint_of(one.content, case.scope) == wanted
            for one in reports
        )

    async def _revise(self, caller: CaseCaller, sent: SentCase) -> UpsertAnswer:
        case = await self._case(caller, sent.case_id or "")
        votes = (await self._store.votes([case.case_id]))[case.case_id]
        content = revised(case.content, sent)
        if content != case.content and not may_rewrite(caller, case):
            raise CaseRefused(
                "INVALID_CASE",
                "This case belongs to another scope;"
                " record what you found as a new case, or judge it.",
            )
        stated = restated(case, votes, sent.confidence, writer=caller.voter, by=caller.by)
        is_left_out = stated is None and sent.confidence not in {None, case.stated_confidence}
        stripped, notes = (("confidence",), (NOT_STATED,)) if is_left_out else ((), ())
        change = rewritten(
            caller,
            case,
            votes,
            content=content,
            stated=stated,
            at=self._moment(),
            reports=await self._newest_reports(case),
        )
        if change is None:
            known = (await self._store.related([case.case_id]))[case.case_id]
            return UpsertAnswer(
                status="unchanged",
                case=case,
                similar_cases=await self._named(caller, known),
                stripped=stripped,
                notes=notes or of_updated(case, case),
            )
        relations = await self._relations_of(change.case)
        similar = await self._named(caller, relations)
        await self._store.apply(replace(change, relations=relations))
        self._on_change()
        return UpsertAnswer(
            status="updated",
            case=change.case,
            similar_cases=similar,
            stripped=stripped,
            notes=(*notes, *of_updated(case, change.case)),
        )

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

    async def _relations_of(self, case: Case) -> list[RelatedCase]:
        """Relate a rewritten case anew: to what is found now, and to what was related to it."""
        found = await self._candidates.candidates(case.content, case.scope, _CANDIDATES + 1)
        related = (await self._store.related([case.case_id]))[case.case_id][:_MAX_RELATED]
        known = await self._store.get([one.case_id for one in related], case.scope.owner_id)
        others = {one.case_id: one for one in (*known, *found) if one.case_id != case.case_id}
        alike = await self._comparer.compare(case.content, list(others.values()))
        similarity = dict(zip(others, alike, strict=True))
        new = [one for one in others.values() if one not in known]
        relations = relate(case.content, new, [similarity[one.case_id] for one in new])
        for one in known:  # each by itself: what many cases name must not forget all but five
            relations += relate(case.content, [one], [similarity[one.case_id]])
        return sorted(relations, key=lambda one: (-one.score, one.case_id))

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
        change = voted(caller, case, votes, vote, reports=await self._newest_reports(case))
        if change is None:
            return FeedbackAnswer(case=case, feedback=tally(case, votes), notes=of_vote(case, None))
        await self._store.apply(change)
        self._on_change()
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


def _told_alike(
    content: CaseContent,
    candidates: Sequence[Case],
    similarities: Sequence[SectionSimilarity],
    scope: Scope,
) -> Case | None:
    """Find the case of the same scope that is told once more; of several one that can be found, the oldest."""
    found = [
        case
        for case, similarity in zip(candidates, similarities, strict=True)
        if case.scope == scope and is_same(content, case.content, similarity)
    ]
    return min(
        found, key=lambda one: (not one.is_findable, one.created_at, one.case_id), default=None
    )


async def _deciding_anew(decide: Callable[[], Awaitable[T]]) -> T:
    """Decide on what is there now, again and again while somebody else is faster."""
    for _ in range(_TRIES):
        try:
            return await decide()
        except StoreConflict:
            await anyio.lowlevel.checkpoint()
    raise CaseRefused("STORE_UNAVAILABLE", "Too many change this case just now; try again.")


class _InTurn:
    """One after another for each name, an owner's or a case's, in the order in which they came."""

    def __init__(self) -> None:
        self._locks: dict[str, anyio.Lock] = {}
        self._users: Counter[str] = Counter()

    @asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        """Wait for one's turn and hold it while the block runs."""
        lock = self._locks.setdefault(name, anyio.Lock())
        self._users[name] += 1
        try:
            async with lock:
                yield
        finally:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name], self._locks[name]
