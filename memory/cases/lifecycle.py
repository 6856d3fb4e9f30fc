"""What a vote or a rewriting makes of a case: draft, accepted, rejected or stale.

    draft → accepted     confident, found helpful by two conversations, by one of them that did not
                         write it and judged what it says now
    any → rejected       said to be useless or rolled back, and hardly any confidence is left
    any → stale          said to hold no more; back to draft once all who said so take it back
    accepted, stale → draft      what it says was rewritten
    rejected → draft     a person rewrote it

Nobody confirms what he wrote himself, however often he tries.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from memory.cases.case import By, Case, CaseContent, Lifecycle, ReviewReason, Vote
from memory.cases.votes import confidence_of, is_helpful

_ACCEPTED_FROM: Final = 0.8
_REJECTED_BELOW: Final = 0.2
_REVIEWED_BELOW: Final = 0.3
_MIN_HELPFUL: Final = 2
_REVIEWED: Final[tuple[ReviewReason, ...]] = ("rollback", "conflict", "high_risk")


def after_vote(case: Case, votes: Sequence[Vote], vote: Vote, at: datetime) -> Case:
    """Give a case's next state.

    `votes` are all of them, the new one in its place already; `vote` is what was said just now, without
    what its voter said before, so that nothing old is heard again.
    """
    confidence = confidence_of(case.stated_confidence, votes)
    voted = replace(
        case,
        confidence=confidence,
        revision=case.revision + 1,
        review_reasons=_reasons_after(case, votes, vote, confidence),
        last_signal=vote.signal or case.last_signal,
        last_feedback_at=at,
        updated_at=at,
    )
    return replace(voted, lifecycle=_lifecycle_after(voted, votes, vote))


def restated(
    case: Case, votes: Sequence[Vote], stated: float | None, *, writer: str, by: By
) -> float | None:
    """Give what counts of a confidence that is stated of a case that is there; None: what was stated stays.

    Whoever did not write the case judges it instead. Once it was judged, its authors may take back what
    they stated and not add to it: no statement outdoes a vote. A person may say either.
    """
    if stated is None or by == "person":
        return stated
    may_state = writer in case.authors and (not votes or stated <= case.stated_confidence)
    return stated if may_state else None


def after_revision(
    case: Case,
    votes: Sequence[Vote],
    *,
    content: CaseContent,
    stated: float | None,
    writer: str,
    by: By,
    at: datetime,
) -> Case:
    """Give a case's next state with what it says from now on; the case itself where nothing differs.

    `stated` is the author's confidence, None: as before. `writer` is the voter that the new words come
    from: from now on it is among those that cannot confirm the case alone. Metadata change neither that
    nor the lifecycle.
    """
    stated_confidence = case.stated_confidence if stated is None else stated
    if content == case.content and stated_confidence == case.stated_confidence:
        return case
    confidence = confidence_of(stated_confidence, votes)
    revised = replace(
        case,
        content=content,
        stated_confidence=stated_confidence,
        confidence=confidence,
        revision=case.revision + 1,
        review_reasons=_with_confidence(case.review_reasons, confidence),
        updated_at=at,
    )
    if _said(content) == _said(case.content):
        return revised
    return replace(
        revised,
        authors=tuple(dict.fromkeys((*case.authors, writer))),
        content_revision=revised.revision,
        lifecycle=_lifecycle_of_rewritten(case.lifecycle, by),
        review_reasons=review_reasons_of(confidence),
    )


def review_reasons_of(confidence: float) -> tuple[ReviewReason, ...]:
    """Say why a person should look at a case that nobody has judged yet."""
    return ("low_confidence",) if confidence < _REVIEWED_BELOW else ()


def _said(content: CaseContent) -> tuple[str, str, str, str]:
    return (content.symptom_summary, content.diagnosis, content.root_cause, content.resolution)


def _lifecycle_of_rewritten(lifecycle: Lifecycle, by: By) -> Lifecycle:
    return "rejected" if lifecycle == "rejected" and by == "agent" else "draft"


def _lifecycle_after(case: Case, votes: Sequence[Vote], vote: Vote) -> Lifecycle:
    speaks_against = vote.signal == "rollback" or vote.helpful is False
    if case.lifecycle == "rejected" or (speaks_against and case.confidence < _REJECTED_BELOW):
        return "rejected"
    if vote.signal == "stale":
        return "stale"
    lifecycle = case.lifecycle
    if lifecycle == "stale" and not any(one.signal == "stale" for one in votes):
        lifecycle = "draft"
    if lifecycle == "draft" and is_helpful(vote) and _is_confirmed(case, votes):
        return "accepted"
    return lifecycle


def _is_confirmed(case: Case, votes: Sequence[Vote]) -> bool:
    """Whether enough conversations stand behind it, and not only those that wrote it."""
    helpful = {one.voter: one for one in votes if is_helpful(one)}
    fresh = {
        voter for voter, one in helpful.items() if one.content_revision == case.content_revision
    }
    return (
        case.confidence >= _ACCEPTED_FROM
        and len(helpful) >= _MIN_HELPFUL
        and bool(fresh - {*case.authors})
    )


def _reasons_after(
    case: Case, votes: Sequence[Vote], vote: Vote, confidence: float
) -> tuple[ReviewReason, ...]:
    """Keep the signals that somebody still stands by, and add the one that was given just now."""
    standing = {one.signal for one in votes if one.signal in case.review_reasons}
    signals = tuple(one for one in _REVIEWED if one in standing or one == vote.signal)
    return _with_confidence(signals, confidence)


def _with_confidence(
    reasons: Sequence[ReviewReason], confidence: float
) -> tuple[ReviewReason, ...]:
    signals = tuple(one for one in reasons if one != "low_confidence")
    return (*review_reasons_of(confidence), *signals)
