"""The order of found cases: relevance first, then trust; and what a search shows of each.

    score = relevance · boost,  boost = 1 ± .2
    trust = base · exp(−λ · days since it was judged or changed last)
    base  = w · wilson + (1 − w) · confidence  from three votes on, w = min(1, votes / 10);
            else confidence

Trust separates cases of about the same relevance. Accepted cases stand a little above drafts, cases
of another environment a little below.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import exp, sqrt
from typing import Final

from memory.cases.case import Case, Vote
from memory.cases.fingerprint import fingerprint_of
from memory.cases.results import CaseSummary, FeedbackTally
from memory.cases.votes import MIN_SAMPLES, ScopedTally, tally_for, total
from memory.items.scope import Scope
from memory.text.lines import clipped, flat

MAX_BOOST: Final = 0.2

_Z: Final = 1.96
_FULL_WEIGHT: Final = 10
"""Votes from which the stated confidence does not count."""
_FADES_A_DAY: Final = {"accepted": 0.001, "draft": 0.003}
_DAY_S: Final = 86_400.0
_TRUST_BOOST: Final = 0.125
_LIFECYCLE_BOOST: Final = {"accepted": 0.075, "draft": -0.075}
"""Enough for an accepted case to pass a draft one place before it."""
_ELSEWHERE_BOOST: Final = -0.05
_WHERE: Final = {
    "app_environment": "in this app and environment",
    "app": "in this app",
    "global": "anywhere",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCase:
    """A case that a search found."""

    case: Case
    score: float
    """Its relevance, 0 to 1 and comparable within one search, and once it is ranked its trust as
    well.
    """
    why: str = ""
    """How it was found, and why it stands where it stands."""


def wilson(helpful: int, votes: int) -> float:
    """Return the lower bound of the share of helpful votes, 0 to 1, at 95 %; 0 without votes."""
    if votes == 0:
        return 0.0
    share, square = helpful / votes, _Z * _Z
    spread = _Z * sqrt((share * (1 - share) + square / (4 * votes)) / votes)
    return max(0.0, (share + square / (2 * votes) - spread) / (1 + square / votes))


def trust(case: Case, counted: ScopedTally, now: datetime) -> float:
    """Return how far a case is to be trusted now, 0 to 1."""
    votes = total(counted.tally)
    weight = min(1.0, votes / _FULL_WEIGHT) if votes >= MIN_SAMPLES else 0.0
    base = weight * wilson(counted.tally.helpful, votes) + (1 - weight) * case.confidence
    since = case.last_feedback_at or case.updated_at
    days = max(0.0, (now - since).total_seconds() / _DAY_S)
    return base * exp(-_FADES_A_DAY.get(case.lifecycle, _FADES_A_DAY["draft"]) * days)


def rank(
    candidates: Sequence[RankedCase],
    votes: Mapping[str, Sequence[Vote]],
    scope: Scope,
    now: datetime,
) -> list[RankedCase]:
    """Return the findable candidates, best first, equal ones by id.

    `scope` is the searcher's: votes of its app and environment matter most.
    """
    ranked = [
        _ranked(hit, tally_for(hit.case, votes.get(hit.case.case_id, ()), scope), scope, now)
        for hit in candidates
        if hit.case.is_findable
    ]
    return sorted(ranked, key=lambda found: (-found.score, found.case.case_id))


def _ranked(hit: RankedCase, counted: ScopedTally, scope: Scope, now: datetime) -> RankedCase:
    case = hit.case
    trusted = trust(case, counted, now)
    boost = _TRUST_BOOST * (2 * trusted - 1) + _LIFECYCLE_BOOST.get(case.lifecycle, 0.0)
    parts = [hit.why, f"{case.lifecycle}, trust {trusted:.0%}", _votes_in_words(counted)]
    environment = case.scope.environment
    if None not in {environment, scope.environment} and environment != scope.environment:
        boost += _ELSEWHERE_BOOST
        parts.append(f"from another environment: {environment}")
    score = hit.score * (1 + min(MAX_BOOST, max(-MAX_BOOST, boost)))
    return replace(hit, score=score, why="; ".join(filter(None, parts)))


def _votes_in_words(counted: ScopedTally) -> str:
    if counted.level == "prior":
        return "not judged yet"
    return f"helpful to {counted.tally.helpful} of {total(counted.tally)} {_WHERE[counted.level]}"


PREVIEW_CHARS: Final = 300
_TEXT_CHARS: Final = 540
"""Of symptom, diagnosis, root cause and resolution together."""


def summarize(ranked: RankedCase, *, feedback: FeedbackTally, similar_count: int) -> CaseSummary:
    """Return the summary of a found case; texts are one line each, and end in `...` where they are
    cut.
    """
    case, content = ranked.case, ranked.case.content
    preview = clipped(flat(content.diagnosis), PREVIEW_CHARS)
    room = _TEXT_CHARS - min(len(preview), PREVIEW_CHARS)
    short: dict[str, str] = {}
    texts = (content.symptom_summary, content.root_cause, content.resolution)
    for left, text in zip((3, 2, 1), sorted(map(flat, texts), key=len), strict=True):
        short[text] = clipped(text, max(0, room // left - 3))
        room -= len(short[text])
    return CaseSummary(
        case_id=case.case_id,
        symptom_summary=short[flat(content.symptom_summary)],
        diagnosis_preview=preview,
        diagnosis_len=len(content.diagnosis),
        root_cause=short[flat(content.root_cause)],
        resolution=short[flat(content.resolution)],
        confidence=case.confidence,
        lifecycle=case.lifecycle,
        similar_count=similar_count,
        source_conv_id=case.source_conversation_id,
        fingerprint=fingerprint_of(content, case.scope).hex(),
        created_at=case.created_at,
        updated_at=case.updated_at,
        feedback_h=feedback.helpful,
        feedback_u=feedback.unhelpful,
        feedback_cv_count=feedback.conversations,
        app_code=case.scope.app_code,
        environment=case.scope.environment,
        score=round(ranked.score, 4),
        why=ranked.why,
    )
