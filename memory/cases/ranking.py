"""The order of found cases: how well they fit, and then how far they are to be trusted.

    score = relevance · boost,    boost = 1 ± .2
    trust = base · exp(−λ · days since it was judged or changed last)
    base  = w · wilson + (1 − w) · confidence from three votes on, w = min(1, votes / 10); else confidence

Relevance decides; trust tells apart what fits about equally well. What was confirmed stands a little
above drafts, what comes from another environment a little below.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import exp, sqrt
from typing import Final

from memory.cases.case import Case, Vote
from memory.cases.votes import MIN_SAMPLES, ScopedTally, tally_for, total
from memory.scope import Scope

MAX_BOOST: Final = 0.2

_Z: Final = 1.96
_FULL_WEIGHT: Final = 10
"""Votes from which on the author's own confidence counts no more."""
_FADES_A_DAY: Final = {"accepted": 0.001, "draft": 0.003}
_DAY_S: Final = 86_400.0
_TRUST_BOOST: Final = 0.125
_LIFECYCLE_BOOST: Final = {"accepted": 0.075, "draft": -0.075}
"""Enough for what was confirmed to pass a draft that is found one place before it, and no more."""
_ELSEWHERE: Final = -0.05
_PLACES: Final = {
    "app_environment": "in this app and environment",
    "app": "in this app",
    "global": "anywhere",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A case that a search brought."""

    case: Case
    relevance: float
    """0 to 1; comparable within one search."""
    why: str = ""
    """How it was found, in plain words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCase:
    """A case in its place."""

    case: Case
    score: float
    """Relevance times boost."""
    why: str


def wilson(helpful: int, votes: int) -> float:
    """Give the lower bound of the share of helpful votes, 0 to 1, at 95 %; 0 without votes."""
    if votes == 0:
        return 0.0
    share, square = helpful / votes, _Z * _Z
    spread = _Z * sqrt((share * (1 - share) + square / (4 * votes)) / votes)
    return max(0.0, (share + square / (2 * votes) - spread) / (1 + square / votes))


def trust(case: Case, counted: ScopedTally, now: datetime) -> float:
    """Say how far a case is to be trusted now, 0 to 1."""
    votes = total(counted.tally)
    weight = min(1.0, votes / _FULL_WEIGHT) if votes >= MIN_SAMPLES else 0.0
    base = weight * wilson(counted.tally.helpful, votes) + (1 - weight) * case.confidence
    since = case.last_feedback_at or case.updated_at
    days = max(0.0, (now - since).total_seconds() / _DAY_S)
    return base * exp(-_FADES_A_DAY.get(case.lifecycle, _FADES_A_DAY["draft"]) * days)


def rank(
    hits: Sequence[Candidate],
    votes: Mapping[str, Sequence[Vote]],
    scope: Scope,
    now: datetime,
) -> list[RankedCase]:
    """Order what was found, best first; equal ones by id. What search may not show is left out.

    `scope` is the searcher's: votes of its app and environment tell most.
    """
    ranked = [
        _ranked(hit, tally_for(hit.case, votes.get(hit.case.case_id, ()), scope), scope, now)
        for hit in hits
        if hit.case.is_findable
    ]
    return sorted(ranked, key=lambda ranked_case: (-ranked_case.score, ranked_case.case.case_id))


def _ranked(hit: Candidate, counted: ScopedTally, scope: Scope, now: datetime) -> RankedCase:
    case = hit.case
    trusted = trust(case, counted, now)
    elsewhere = _is_elsewhere(case, scope)
    boost = _TRUST_BOOST * (2 * trusted - 1)
    boost += _LIFECYCLE_BOOST.get(case.lifecycle, 0.0)
    boost += _ELSEWHERE if elsewhere else 0.0
    score = hit.relevance * (1 + min(MAX_BOOST, max(-MAX_BOOST, boost)))
    parts = [hit.why, f"{case.lifecycle}, trust {trusted:.0%}", _told(counted)]
    if elsewhere:
        parts.append(f"from another environment: {case.scope.environment}")
    return RankedCase(case=case, score=score, why="; ".join(part for part in parts if part))


def _is_elsewhere(case: Case, scope: Scope) -> bool:
    theirs = case.scope.environment
    return None not in {theirs, scope.environment} and theirs != scope.environment


def _told(counted: ScopedTally) -> str:
    if counted.level == "prior":
        return "not judged yet"
    votes = total(counted.tally)
    return f"helpful to {counted.tally.helpful} of {votes} {_PLACES[counted.level]}"
