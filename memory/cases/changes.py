"""The three ways in which a case changes: created, updated, voted on. Pure.

Each function takes what was read and returns the whole change to write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Final

from memory.cases.caller import is_reachable
from memory.cases.case import (
    Case,
    CaseCaller,
    CaseContent,
    CaseMetadata,
    Event,
    HistoryEntry,
    Lifecycle,
    RelatedCase,
    Vote,
)
from memory.cases.case_writes import CaseChange
from memory.cases.fingerprint import fingerprint_of
from memory.cases.input import TEXT_FIELDS, SentCase
from memory.cases.item import to_item
from memory.cases.lifecycle import after_revision, after_vote, review_reasons_of
from memory.cases.results import CaseRefused, sentence
from memory.cases.votes import with_vote
from memory.text.lines import clipped

MAX_KEPT_CHARS: Final = 2_000
"""Characters of each replaced text that stay in the history."""

_METADATA: Final = "metadata."


def create_change(
    caller: CaseCaller,
    case_id: str,
    content: CaseContent,
    stated: float,
    *,
    at: datetime,
    relations: Sequence[RelatedCase],
    lifecycle: Lifecycle = "draft",
) -> CaseChange:
    """Return the change that records a new case in the caller's scope."""
    case = Case(
        case_id=case_id,
        scope=caller.scope,
        content=content,
        stated_confidence=stated,
        confidence=stated,
        lifecycle=lifecycle,
        source_conversation_id=caller.conversation_id,
        authors=(caller.voter,),
        review_reasons=review_reasons_of(stated),
        created_at=at,
        updated_at=at,
    )
    details = {"lifecycle": case.lifecycle, "confidence": stated}
    change = _change(caller, None, case, "created", details)
    return replace(change, relations=relations, shown_to=caller.voter)


def update_change(
    caller: CaseCaller, case: Case, votes: Sequence[Vote], sent: SentCase, *, at: datetime
) -> CaseChange | None:
    """Return the change to what was sent; None if nothing would be different.

    Raise `CaseRefused` if the case is of another scope than the caller may change.
    """
    content = revised(case.content, sent)
    stated = case.stated_confidence if sent.confidence is None else sent.confidence
    after = after_revision(
        case, votes, content=content, stated=stated, writer=caller.voter, by=caller.by, at=at
    )
    if after is case:
        return None
    if not is_reachable(caller, case):
        raise CaseRefused("INVALID_CASE", sentence("refusals", "other_scope"))
    changed = changed_fields(case.content, content)
    details: dict[str, object] = {"fields": changed}
    if after.confidence != case.confidence:
        details["confidence"] = {"from": case.confidence, "to": after.confidence}
    if replaced := _replaced(case.content, changed):
        details["before"] = replaced
    return replace(_change(caller, case, after, "updated", details), shown_to=caller.voter)


def vote_change(
    caller: CaseCaller, case: Case, votes: Sequence[Vote], vote: Vote
) -> CaseChange | None:
    """Return the change that counts a vote; None if it only repeats the voter's earlier vote.

    `votes` are those before it.
    """
    if any(known == replace(vote, at=known.at) for known in votes):
        return None
    after = after_vote(case, with_vote(votes, vote), vote, vote.at, by=caller.by)
    details: dict[str, object] = {
        "helpful": vote.helpful,
        "signal": vote.signal,
        "app_code": vote.app_code,
        "environment": vote.environment,
        "confidence": {"from": case.confidence, "to": after.confidence},
    }
    return replace(_change(caller, case, after, "feedback", details), vote=vote)


def revised(content: CaseContent, sent: SentCase) -> CaseContent:
    """Return the content with what was sent; what was not sent, or is an empty list, stays."""
    known = {
        field.name: value
        for field in fields(CaseMetadata)
        if (value := getattr(sent.metadata, field.name))
    }
    return replace(content, **sent.texts, metadata=replace(content.metadata, **known))


def changed_fields(before: CaseContent, after: CaseContent) -> list[str]:
    """Return the names of the fields in which two contents differ."""
    old, new = before.metadata, after.metadata
    around = [field.name for field in fields(CaseMetadata)]
    return [
        *(name for name in TEXT_FIELDS if getattr(before, name) != getattr(after, name)),
        *(f"{_METADATA}{name}" for name in around if getattr(old, name) != getattr(new, name)),
    ]


def _replaced(before: CaseContent, changed: Sequence[str]) -> dict[str, object]:
    """Return the earlier values of the fields that changed, long texts cut, empty ones left out."""
    texts = {name: getattr(before, name) for name in TEXT_FIELDS if name in changed}
    replaced: dict[str, object] = {
        name: clipped(text, MAX_KEPT_CHARS) for name, text in texts.items() if text
    }
    for name in changed:
        value = getattr(before.metadata, name.removeprefix(_METADATA), None)
        if name.startswith(_METADATA) and value:
            replaced[name] = list(value) if isinstance(value, tuple) else value
    return replaced


def _change(
    caller: CaseCaller,
    before: Case | None,
    after: Case,
    event: Event,
    details: Mapping[str, object],
) -> CaseChange:
    events: list[tuple[Event, Mapping[str, object]]] = [(event, details)]
    if before is not None and before.lifecycle != after.lifecycle:
        events.append(("lifecycle", {"from": before.lifecycle, "to": after.lifecycle}))
    return CaseChange(
        case=after,
        expected_revision=0 if before is None else before.revision,
        fingerprint=fingerprint_of(after.content, after.scope),
        history=[
            HistoryEntry(
                at=after.updated_at,
                event=name,
                by=caller.by,
                user_id=caller.scope.owner_id,
                conversation_id=caller.conversation_id,
                details=values,
            )
            for name, values in events
        ],
        item=to_item(after),
    )
