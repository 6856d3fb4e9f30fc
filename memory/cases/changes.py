"""The four ways in which a case changes: created, merged with a report, updated, voted on. Pure.

Each function takes what was read and returns the whole change to write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from memory.cases.answer_notes import of_full
from memory.cases.caller import is_reachable, may_change, owns
from memory.cases.case import (
    Case,
    CaseCaller,
    CaseContent,
    Event,
    HistoryEntry,
    Lifecycle,
    RelatedCase,
    Report,
    Vote,
)
from memory.cases.content_merge import (
    Replaceable,
    absorbed,
    changed_fields,
    not_replaced,
    revised,
    without_room,
)
from memory.cases.fingerprint import fingerprint_of
from memory.cases.input import TEXT_FIELDS, SentCase
from memory.cases.item import to_item
from memory.cases.lifecycle import (
    after_revision,
    after_vote,
    restated,
    review_reasons_of,
    with_stated,
)
from memory.cases.results import CaseRefused, sentence
from memory.cases.store import CaseChange
from memory.cases.votes import cast, with_vote
from memory.text_lines import clipped

MAX_KEPT_CHARS: Final = 2_000
"""Characters of each replaced text that stay in the history."""

_METADATA: Final = "metadata."


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """A decided update; its relations are still open."""

    content: CaseContent
    change: CaseChange | None
    """None: nothing is different."""
    stripped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


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


def merge_change(
    caller: CaseCaller,
    case: Case,
    content: CaseContent,
    *,
    at: datetime,
    reports: Sequence[Report] = (),
    votes: Sequence[Vote] = (),
    stated: float | None = None,
) -> CaseChange:
    """Return the change that merges a repeated report into a case; it counts as no vote.

    `reports` are the newest earlier ones, which stay searched. `stated` is the new stated
    confidence of an unsure draft, None: as before. The report's metadata fill gaps if the caller
    may change the case.
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
    details: dict[str, object] = {"report": after.reports, **_confidence_step(case, after)}
    if fields := changed_fields(case.content, after.content):
        details["fields"] = fields
    report = Report(content=content, conversation_id=caller.conversation_id, at=at)
    change = _change(caller, case, after, "merged", details, [*reports, report])
    return replace(change, report=report)


def update_change(
    caller: CaseCaller,
    case: Case,
    votes: Sequence[Vote],
    *,
    content: CaseContent,
    stated: float | None,
    at: datetime,
    reports: Sequence[Report] = (),
) -> CaseChange | None:
    """Return the change to this content and stated confidence; None if nothing
    would be different.
    """
    after = after_revision(
        case, votes, content=content, stated=stated, writer=caller.voter, by=caller.by, at=at
    )
    if after is case:
        return None
    fields = changed_fields(case.content, content)
    details: dict[str, object] = {"fields": fields, **_confidence_step(case, after)}
    if replaced := _replaced(case.content, fields):
        details["before"] = replaced
    change = _change(caller, case, after, "updated", details, reports)
    return replace(change, shown_to=caller.voter)


def decide_update(
    caller: CaseCaller,
    case: Case,
    votes: Sequence[Vote],
    sent: SentCase,
    *,
    at: datetime,
    reports: Sequence[Report],
) -> Update:
    """Return the update that the caller may make of what it sent, and what was left out of it and
    why.

    Raise `CaseRefused` if the case is of another scope than the caller may change.
    """
    replaceable: Replaceable = "values" if owns(caller, case) else "gaps"
    if caller.by == "person":
        replaceable = "all"
    content = revised(case.content, sent, replaceable=replaceable)
    if content != case.content and not is_reachable(caller, case):
        raise CaseRefused("INVALID_CASE", sentence("refusals", "other_scope"))
    stripped: list[str] = []
    notes: list[str] = []
    stated = restated(case, votes, sent.confidence, writer=caller.voter, by=caller.by)
    if stated is None and sent.confidence not in {None, case.stated_confidence}:
        stripped, notes = ["confidence"], [sentence("notes", "not_stated")]
    if not may_change(caller, case, votes):
        content, wanted = case.content, revised(case.content, sent)
        if changed := changed_fields(case.content, wanted):
            stripped += changed
            notes.append(sentence("notes", "found_right"))
    else:
        if not owns(caller, case) and (kept := not_replaced(case.content, sent)):
            stripped += kept
            notes.append(sentence("notes", "not_replaced"))
        if caller.by != "person":
            notes += of_full(without_room(case.content.metadata, sent.metadata))
    change = update_change(
        caller, case, votes, content=content, stated=stated, at=at, reports=reports
    )
    return Update(content=content, change=change, stripped=tuple(stripped), notes=tuple(notes))


def vote_change(
    caller: CaseCaller,
    case: Case,
    votes: Sequence[Vote],
    vote: Vote,
    *,
    reports: Sequence[Report] = (),
) -> CaseChange | None:
    """Return the change that counts a vote; None if it only repeats the voter's earlier one.

    `votes` are those before it.
    """
    stored = cast(votes, vote)
    after = after_vote(case, with_vote(votes, vote), vote, vote.at, by=caller.by)
    earlier = next((known for known in votes if known.voter == vote.voter), None)
    if earlier is not None and earlier == replace(stored, at=earlier.at):
        judged = ("lifecycle", "confidence", "review_reasons", "last_signal")
        if all(getattr(after, name) == getattr(case, name) for name in judged):
            return None
    details: dict[str, object] = {
        "helpful": vote.helpful,
        "signal": vote.signal,
        "app_code": vote.app_code,
        "environment": vote.environment,
        "confidence": {"from": case.confidence, "to": after.confidence},
    }
    return replace(_change(caller, case, after, "feedback", details, reports), vote=stored)


def _confidence_step(before: Case, after: Case) -> dict[str, object]:
    if before.confidence == after.confidence:
        return {}
    return {"confidence": {"from": before.confidence, "to": after.confidence}}


def _replaced(before: CaseContent, fields: Sequence[str]) -> dict[str, object]:
    """Return the earlier values of the fields that changed, long texts cut, empty ones left out."""
    texts = {name: getattr(before, name) for name in TEXT_FIELDS if name in fields}
    replaced: dict[str, object] = {
        name: clipped(text, MAX_KEPT_CHARS) for name, text in texts.items() if text
    }
    for name in fields:
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
    reports: Sequence[Report] = (),
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
        item=to_item(after, reports),
    )
