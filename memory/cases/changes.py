"""The four ways in which a case changes, each decided whole: what it is then, and what is told of it.

Pure. Whoever calls these has read the case and its votes, and writes what they give.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from memory.cases.case import (
    Case,
    CaseCaller,
    CaseContent,
    Event,
    HistoryEntry,
    RelatedCase,
    Report,
    Vote,
)
from memory.cases.content_merge import absorbed, changed_fields
from memory.cases.fingerprint import fingerprint_of
from memory.cases.input import TEXT_FIELDS
from memory.cases.item import to_item
from memory.cases.lifecycle import (
    after_revision,
    after_vote,
    is_found_right,
    review_reasons_of,
    with_stated,
)
from memory.cases.store import CaseChange
from memory.cases.votes import cast, with_vote
from memory.text_lines import clipped

MAX_KEPT_CHARS: Final = 2_000
"""Of each text that a rewriting replaces; so much of it stays in the history."""

_NEW: Final = 0
_METADATA: Final = "metadata."


def recorded(
    caller: CaseCaller,
    case_id: str,
    content: CaseContent,
    stated: float,
    *,
    at: datetime,
    relations: Sequence[RelatedCase],
) -> CaseChange:
    """Decide on a new case: a draft, in the caller's scope for good."""
    case = Case(
        case_id=case_id,
        scope=caller.scope,
        content=content,
        stated_confidence=stated,
        confidence=stated,
        source_conversation_id=caller.conversation_id,
        authors=(caller.voter,),
        review_reasons=review_reasons_of(stated),
        created_at=at,
        updated_at=at,
    )
    told = {"lifecycle": case.lifecycle, "confidence": stated}
    change = _change(None, case, [_entry(caller, at, "created", told)], caller)
    return replace(change, relations=relations, shown_to=caller.voter)


def taken_in(
    caller: CaseCaller,
    case: Case,
    content: CaseContent,
    *,
    at: datetime,
    reports: Sequence[Report] = (),
    votes: Sequence[Vote] = (),
    stated: float | None = None,
) -> CaseChange:
    """Decide on a case that a near-duplicate goes into: it is kept as a report, and judges nothing.

    `reports` are the newest before it, here and below: what they add stays searched. `stated`: so sure
    an unsure draft is from now on, with its `votes`; None: as before. What it knows of the surroundings
    fills gaps, where the caller may change the case.
    """
    metadata = case.content.metadata
    if may_change(caller, case, votes):
        metadata = absorbed(metadata, content.metadata)
    after = replace(
        case,
        content=replace(case.content, metadata=metadata),
        reports=case.reports + 1,
        revision=case.revision + 1,
        updated_at=at,
    )
    if stated is not None:
        after = with_stated(after, votes, stated)
    told: dict[str, object] = {"report": after.reports}
    if after.confidence != case.confidence:
        told["confidence"] = {"from": case.confidence, "to": after.confidence}
    if fields := changed_fields(case.content, after.content):
        told["fields"] = fields
    report = Report(content=content, conversation_id=caller.conversation_id, at=at)
    entry = _entry(caller, at, "merged", told)
    change = _change(case, after, [entry], caller, [*reports, report])
    return replace(change, report=report)


def is_reachable(caller: CaseCaller, case: Case) -> bool:
    """Whether the caller's scope lets it change what a case says: an agent one of exactly its app, a person each."""
    return caller.by == "person" or caller.scope.app_code == case.scope.app_code


def owns(caller: CaseCaller, case: Case) -> bool:
    """Whether what a case says gives way to the caller: an author of it, or a person."""
    return caller.by == "person" or caller.voter in case.authors


def may_change(caller: CaseCaller, case: Case, votes: Sequence[Vote]) -> bool:
    """Whether the caller may change what a case says: what others found right, only who owns it."""
    return owns(caller, case) or not is_found_right(case, votes, but=caller.voter)


def rewritten(
    caller: CaseCaller,
    case: Case,
    votes: Sequence[Vote],
    *,
    content: CaseContent,
    stated: float | None,
    at: datetime,
    reports: Sequence[Report] = (),
) -> CaseChange | None:
    """Decide on an update; None where nothing would be different. Its relations are left open."""
    after = after_revision(
        case, votes, content=content, stated=stated, writer=caller.voter, by=caller.by, at=at
    )
    if after is case:
        return None
    fields = changed_fields(case.content, content)
    told: dict[str, object] = {"fields": fields}
    if kept := _replaced(case.content, fields):
        told["before"] = kept
    if after.confidence != case.confidence:
        told["confidence"] = {"from": case.confidence, "to": after.confidence}
    change = _change(case, after, [_entry(caller, at, "updated", told)], caller, reports)
    return replace(change, shown_to=caller.voter)


def voted(
    caller: CaseCaller,
    case: Case,
    votes: Sequence[Vote],
    vote: Vote,
    *,
    reports: Sequence[Report] = (),
) -> CaseChange | None:
    """Decide on a vote; `votes` are those before it. None where it says only what it said before."""
    stored = cast(votes, vote)
    after = after_vote(case, with_vote(votes, vote), vote, vote.at, by=caller.by)
    earlier = next((each_vote for each_vote in votes if each_vote.voter == vote.voter), None)
    if earlier == replace(stored, at=earlier.at if earlier else stored.at) and _judged(
        after
    ) == _judged(case):
        return None
    told: dict[str, object] = {
        "helpful": vote.helpful,
        "signal": vote.signal,
        "app_code": vote.app_code,
        "environment": vote.environment,
        "confidence": {"from": case.confidence, "to": after.confidence},
    }
    change = _change(case, after, [_entry(caller, vote.at, "feedback", told)], caller, reports)
    return replace(change, vote=stored)


def _replaced(before: CaseContent, fields: Sequence[str]) -> dict[str, object]:
    """Give what stood in the fields that changed; of texts the beginnings, of what was empty nothing."""
    texts = {name: getattr(before, name) for name in TEXT_FIELDS if name in fields}
    kept: dict[str, object] = {
        name: clipped(text, MAX_KEPT_CHARS) for name, text in texts.items() if text
    }
    for name in fields:
        value = getattr(before.metadata, name.removeprefix(_METADATA), None)
        if name.startswith(_METADATA) and value:
            kept[name] = list(value) if isinstance(value, tuple) else value
    return kept


def _change(
    before: Case | None,
    after: Case,
    history: Sequence[HistoryEntry],
    caller: CaseCaller,
    reports: Sequence[Report] = (),
) -> CaseChange:
    told = list(history)
    if before is not None and before.lifecycle != after.lifecycle:
        steps = {"from": before.lifecycle, "to": after.lifecycle}
        told.append(_entry(caller, after.updated_at, "lifecycle", steps))
    return CaseChange(
        case=after,
        expected_revision=_NEW if before is None else before.revision,
        fingerprint=fingerprint_of(after.content, after.scope),
        history=told,
        item=to_item(after, reports),
    )


def _entry(
    caller: CaseCaller, at: datetime, event: Event, details: Mapping[str, object]
) -> HistoryEntry:
    return HistoryEntry(
        at=at,
        event=event,
        by=caller.by,
        user_id=caller.scope.owner_id,
        conversation_id=caller.conversation_id,
        details=details,
    )


def _judged(case: Case) -> tuple[object, ...]:
    return (case.lifecycle, case.confidence, case.review_reasons, case.last_signal)
