"""The lifecycle of a case: draft, accepted, rejected or stale.

    draft → accepted    confident, and what it says now was found helpful by two conversations,
                        one of which did not write it
    any → rejected      it was found useless or rolled back, and hardly any confidence is left
    any → stale         a vote on its present content says that it holds no more; draft again
                        when all who said so take it back, or when it helped a person
    accepted, stale → draft    its content was rewritten
    rejected → draft           a person rewrote it

No conversation confirms its own case: who rewrites a case becomes one of its authors.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from memory.cases.case import By, Case, CaseContent, Lifecycle, ReviewReason, Vote
from memory.cases.votes import (
    confidence_of,
    is_helpful,
    on_present_content,
)

_ACCEPTED_FROM: Final = 0.8
_REJECTED_BELOW: Final = 0.2
_REVIEWED_BELOW: Final = 0.3
_MIN_HELPFUL: Final = 2
_REVIEWED: Final[tuple[ReviewReason, ...]] = ("rollback", "conflict", "high_risk")


def after_vote(
    case: Case, votes: Sequence[Vote], vote: Vote, at: datetime, *, by: By = "agent"
) -> Case:
    """Return a case's next state.

    `votes` are all votes on it; they include `vote`, the new one.
    """
    confidence = confidence_of(case, votes)
    is_cleared = by == "person" and is_helpful(vote)
    voted = replace(
        case,
        confidence=confidence,
        revision=case.revision + 1,
        review_reasons=_reasons_after(case, () if is_cleared else votes, vote, confidence),
        last_signal=vote.signal or case.last_signal,
        last_feedback_at=at,
        updated_at=at,
    )
    return replace(voted, lifecycle=_lifecycle_after(voted, votes, vote, by))


def after_revision(
    case: Case,
    votes: Sequence[Vote],
    *,
    content: CaseContent,
    stated: float,
    writer: str,
    by: By,
    at: datetime,
) -> Case:
    """Return a case's state after an update; the case itself if nothing differs.

    `writer` becomes an author, and so cannot confirm the case alone. Metadata change neither the
    authors nor the lifecycle.
    """
    if content == case.content and stated == case.stated_confidence:
        return case
    revised = replace(case, content=content, revision=case.revision + 1, updated_at=at)
    if replace(content, metadata=case.content.metadata) != case.content:
        is_person = by == "person"
        stays_rejected = case.lifecycle == "rejected" and not is_person
        revised = replace(
            revised,
            authors=tuple(dict.fromkeys((*case.authors, writer))),
            content_revision=revised.revision,
            lifecycle="rejected" if stays_rejected else "draft",
            review_reasons=() if is_person else case.review_reasons,
        )
    return _with_stated(revised, votes, stated)


def review_reasons_of(confidence: float) -> tuple[ReviewReason, ...]:
    """Return why a person should look at a case that nobody has judged yet."""
    return ("low_confidence",) if confidence < _REVIEWED_BELOW else ()


def _lifecycle_after(case: Case, votes: Sequence[Vote], vote: Vote, by: By) -> Lifecycle:
    is_refuted = case.confidence < _REJECTED_BELOW and _speaks_against(vote)
    if case.lifecycle == "rejected" or is_refuted:
        return "rejected"
    if vote.signal == "stale" and on_present_content(case, [vote]):
        return "stale"
    lifecycle = case.lifecycle
    is_taken_back = not any(known.signal == "stale" for known in on_present_content(case, votes))
    if lifecycle == "stale" and (is_taken_back or (by == "person" and is_helpful(vote))):
        lifecycle = "draft"
    if lifecycle == "draft" and is_helpful(vote) and _is_confirmed(case, votes):
        return "accepted"
    return lifecycle


def _is_confirmed(case: Case, votes: Sequence[Vote]) -> bool:
    """Return whether enough conversations found it helpful, one of which did not write it."""
    helped = _helped(case, votes)
    return (
        case.confidence >= _ACCEPTED_FROM
        and len(helped) >= _MIN_HELPFUL
        and bool(helped - {*case.authors})
    )


def _helped(case: Case, votes: Sequence[Vote]) -> set[str]:
    return {vote.voter for vote in on_present_content(case, votes) if is_helpful(vote)}


def _speaks_against(vote: Vote) -> bool:
    return vote.signal == "rollback" or vote.helpful is False


def _reasons_after(
    case: Case, votes: Sequence[Vote], vote: Vote, confidence: float
) -> tuple[ReviewReason, ...]:
    """Return the reasons that a vote still supports, and those that the new one adds."""
    standing = {known.signal for known in votes}
    supported = {*case.review_reasons} & standing | {vote.signal}
    return _with_confidence([reason for reason in _REVIEWED if reason in supported], confidence)


def _with_stated(case: Case, votes: Sequence[Vote], stated: float) -> Case:
    """Return a case with another stated confidence, and what the votes make of it."""
    changed = replace(case, stated_confidence=stated)
    confidence = confidence_of(changed, votes)
    reasons = _with_confidence(case.review_reasons, confidence)
    return replace(changed, confidence=confidence, review_reasons=reasons)


def _with_confidence(
    reasons: Sequence[ReviewReason], confidence: float
) -> tuple[ReviewReason, ...]:
    signals = [reason for reason in reasons if reason != "low_confidence"]
    return (*review_reasons_of(confidence), *signals)
