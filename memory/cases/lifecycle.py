"""What a vote or a rewriting makes of a case: draft, accepted, rejected or stale.

    draft → accepted     confident, and what it says now found helpful by two conversations, by one of
                         them that did not write it
    any → rejected       said to be useless or rolled back, and hardly any confidence is left; by a
                         conversation that did not write it, or a person; by two where two found it helpful
    any → stale          said of its present words to hold no more; back to draft once all who said so take
                         it back, or a person says that it helped
    accepted, stale → draft      what it says was rewritten
    rejected → draft     a person rewrote it

Nobody confirms what he wrote himself, however often he tries, and nobody alone does away with what is there:
who rewrites a case is among its authors then, only the first of them states how sure it is, and what others
found right is rewritten by its authors or a person.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from memory.cases.case import By, Case, CaseContent, Lifecycle, ReviewReason, Vote
from memory.cases.votes import (
    confidence_of,
    counted,
    is_helpful,
    on_present_words,
    standing_signals,
)

_ACCEPTED_FROM: Final = 0.8
_REJECTED_BELOW: Final = 0.2
_REVIEWED_BELOW: Final = 0.3
_MIN_HELPFUL: Final = 2
_MIN_AGAINST: Final = 2
"""So many have to speak against what that many found helpful."""
_REVIEWED: Final[tuple[ReviewReason, ...]] = ("rollback", "conflict", "high_risk")


def after_vote(
    case: Case, votes: Sequence[Vote], vote: Vote, at: datetime, *, by: By = "agent"
) -> Case:
    """Give a case's next state.

    `votes` are all of them, the new one in its place already; `vote` is what was said just now, without
    what its voter said before, so that nothing old is heard again. `by` says who said it.
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


def restated(
    case: Case, votes: Sequence[Vote], stated: float | None, *, writer: str, by: By
) -> float | None:
    """Give what counts of a confidence that is stated of a case that is there; None: what was stated stays.

    Whoever did not write the case first judges it instead: rewriting a sign of it gives nobody a say.
    Once it was judged, that author may take back what was stated and not add to it: no statement outdoes
    a vote. A person may say either.
    """
    if stated is None or by == "person":
        return stated
    may_state = writer in case.authors[:1] and (not votes or stated <= case.stated_confidence)
    return stated if may_state else None


def raised(case: Case, votes: Sequence[Vote], stated: float) -> float | None:
    """Give what an unsure draft's stated confidence becomes where it is told again; None: it stays.

    Only of a draft that search hides, and that nobody who did not write it spoke against: who tells it
    again more surely has found it too.
    """
    if case.lifecycle != "draft" or case.is_findable or stated <= case.stated_confidence:
        return None
    return None if is_spoken_against(case, votes) else stated


def is_spoken_against(case: Case, votes: Sequence[Vote]) -> bool:
    """Whether somebody who did not write the case found it useless or rolled it back."""
    return bool(_against(case, votes) - {*case.authors})


def is_found_right(case: Case, votes: Sequence[Vote], *, but: str) -> bool:
    """Whether others than a voter found right what a case says: they accepted it, or it helped two of them.

    Not where another of them said that it holds no more: then anybody may say what holds now.
    """
    others = [vote for vote in on_present_words(case, votes) if vote.voter != but]
    if case.lifecycle == "stale" and any(other.signal == "stale" for other in others):
        return False
    return case.lifecycle == "accepted" or len(_helped(case, others)) >= _MIN_HELPFUL


def with_stated(case: Case, votes: Sequence[Vote], stated: float) -> Case:
    """Give a case with another stated confidence, and what the votes make of it."""
    restated_case = replace(case, stated_confidence=stated)
    confidence = confidence_of(restated_case, votes)
    return replace(
        restated_case,
        confidence=confidence,
        review_reasons=_with_confidence(case.review_reasons, confidence),
    )


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
    revised = replace(case, content=content, revision=case.revision + 1, updated_at=at)
    if _said(content) == _said(case.content):
        return with_stated(revised, votes, stated_confidence)
    rewritten = replace(
        revised,
        authors=tuple(dict.fromkeys((*case.authors, writer))),
        content_revision=revised.revision,
        judged_from=revised.revision if by == "person" else case.judged_from,
        lifecycle=_lifecycle_of_rewritten(case.lifecycle, by),
        review_reasons=() if by == "person" else case.review_reasons,
    )
    return with_stated(rewritten, votes, stated_confidence)


def review_reasons_of(confidence: float) -> tuple[ReviewReason, ...]:
    """Say why a person should look at a case that nobody has judged yet."""
    return ("low_confidence",) if confidence < _REVIEWED_BELOW else ()


def _said(content: CaseContent) -> tuple[str, str, str, str]:
    return (content.symptom_summary, content.diagnosis, content.root_cause, content.resolution)


def _lifecycle_of_rewritten(lifecycle: Lifecycle, by: By) -> Lifecycle:
    return "rejected" if lifecycle == "rejected" and by == "agent" else "draft"


def _lifecycle_after(case: Case, votes: Sequence[Vote], vote: Vote, by: By) -> Lifecycle:
    if case.lifecycle == "rejected" or (
        _speaks_against(vote) and _is_refuted(case, votes, is_person=by == "person")
    ):
        return "rejected"
    if vote.signal == "stale" and on_present_words(case, [vote]):
        return "stale"
    lifecycle = case.lifecycle
    is_taken_back = not any(vote.signal == "stale" for vote in on_present_words(case, votes))
    if lifecycle == "stale" and (is_taken_back or (by == "person" and is_helpful(vote))):
        lifecycle = "draft"
    if lifecycle == "draft" and is_helpful(vote) and _is_confirmed(case, votes):
        return "accepted"
    return lifecycle


def _is_refuted(case: Case, votes: Sequence[Vote], *, is_person: bool) -> bool:
    """Whether hardly any confidence is left, and not only by the word of those that wrote it.

    Against what others confirmed only those speak that judged the same words.
    """
    was_confirmed = case.lifecycle == "accepted" or len(_helped(case, votes)) >= _MIN_HELPFUL
    heard = on_present_words(case, votes) if was_confirmed else votes
    return (
        case.confidence < _REJECTED_BELOW
        and len(_against(case, heard)) >= (_MIN_AGAINST if was_confirmed else 1)
        and (is_person or is_spoken_against(case, heard))
    )


def _helped(case: Case, votes: Sequence[Vote]) -> set[str]:
    return {vote.voter for vote in on_present_words(case, votes) if is_helpful(vote)}


def _against(case: Case, votes: Sequence[Vote]) -> set[str]:
    return {vote.voter for vote in counted(case, votes) if _speaks_against(vote)}


def _speaks_against(vote: Vote) -> bool:
    return vote.signal == "rollback" or vote.helpful is False


def _is_confirmed(case: Case, votes: Sequence[Vote]) -> bool:
    """Whether enough conversations stand behind it, and not only those that wrote it."""
    helped = _helped(case, votes)
    return (
        case.confidence >= _ACCEPTED_FROM
        and len(helped) >= _MIN_HELPFUL
        and bool(helped - {*case.authors})
    )


def _reasons_after(
    case: Case, votes: Sequence[Vote], vote: Vote, confidence: float
) -> tuple[ReviewReason, ...]:
    """Keep the signals that one of `votes` still stands by, and add the one that was given just now."""
    known = {*case.review_reasons} & standing_signals(case, votes)
    new = standing_signals(case, [vote])
    signals = tuple(reason for reason in _REVIEWED if reason in known or reason in new)
    return _with_confidence(signals, confidence)


def _with_confidence(
    reasons: Sequence[ReviewReason], confidence: float
) -> tuple[ReviewReason, ...]:
    signals = tuple(reason for reason in reasons if reason != "low_confidence")
    return (*review_reasons_of(confidence), *signals)
