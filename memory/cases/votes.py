"""What the votes on a case come to: one vote a conversation, of which the last word counts.

Counts are of distinct voters, and no vote is both for a case and against it. A vote belongs to the
app and environment in which the case was used, and to the content that it was cast on: when that is
rewritten, it counts no more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Final, Literal

from memory.cases.case import Case, Signal, Vote
from memory.cases.results import FeedbackTally
from memory.items.scope import Scope

MIN_SAMPLES: Final = 3
"""Fewer votes of an app or environment are not considered by themselves."""

_HELPFUL: Final = 0.1
_UNHELPFUL: Final = -0.2
_SUCCESS: Final = 0.05
_AGAINST: Final[dict[Signal | None, float]] = {"stale": -0.1, "rollback": -0.1}
_DECIMALS: Final = 4

Level = Literal["app_environment", "app", "global", "prior"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedTally:
    """The votes that matter most to a searcher, and where they were cast; `prior`: none."""

    tally: FeedbackTally
    level: Level


def with_vote(votes: Sequence[Vote], vote: Vote) -> list[Vote]:
    """Return all votes after `vote` was cast, oldest first; it replaces the voter's last one."""
    others = [known for known in votes if known.voter != vote.voter]
    return sorted([*others, vote], key=lambda known: (known.at, known.voter))


def is_helpful(vote: Vote) -> bool:
    """Return whether a vote is for the case, and in no way against it."""
    return _is_for(vote) and not _is_against(vote)


def on_present_content(case: Case, votes: Sequence[Vote]) -> list[Vote]:
    """Return the votes on what the case says now."""
    return [vote for vote in votes if vote.content_revision >= case.content_revision]


def confidence_of(case: Case, votes: Sequence[Vote]) -> float:
    """Return the confidence, 0 to 1, from the stated one and the votes in any order."""
    moved = fsum(map(_delta, on_present_content(case, votes)))
    return round(min(1.0, max(0.0, case.stated_confidence + moved)), _DECIMALS)


def tally(case: Case, votes: Sequence[Vote]) -> FeedbackTally:
    """Count the voters for and against what a case says now, and those for it that did not write
    it.
    """
    present = on_present_content(case, votes)
    helpful = {vote.voter for vote in present if is_helpful(vote)}
    return FeedbackTally(
        helpful=len(helpful),
        unhelpful=len({vote.voter for vote in present if vote.helpful is False}),
        conversations=len(helpful - {*case.authors}),
    )


def tally_for(case: Case, votes: Sequence[Vote], scope: Scope) -> ScopedTally:
    """Count the votes of the searcher's app and environment, or of the app, or all.

    A level counts if the searcher names it and it has at least `MIN_SAMPLES` votes.
    """
    if scope.app_code is not None:
        of_app = [vote for vote in votes if vote.app_code == scope.app_code]
        here = [vote for vote in of_app if vote.environment == scope.environment]
        if scope.environment is not None and total(found := tally(case, here)) >= MIN_SAMPLES:
            return ScopedTally(tally=found, level="app_environment")
        if total(found := tally(case, of_app)) >= MIN_SAMPLES:
            return ScopedTally(tally=found, level="app")
    found = tally(case, votes)
    return ScopedTally(tally=found, level="global" if total(found) else "prior")


def total(found: FeedbackTally) -> int:
    """Return how many votes say whether the case helped."""
    return found.helpful + found.unhelpful


def _is_for(vote: Vote) -> bool:
    return vote.helpful is True or vote.signal == "success"


def _is_against(vote: Vote) -> bool:
    return vote.helpful is False or vote.signal in _AGAINST


def _delta(vote: Vote) -> float:
    if _is_against(vote):
        return (_UNHELPFUL if vote.helpful is False else 0.0) + _AGAINST.get(vote.signal, 0.0)
    helpful = _HELPFUL if vote.helpful else 0.0
    return helpful + (_SUCCESS if vote.signal == "success" else 0.0)
