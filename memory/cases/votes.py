"""What the votes on a case come to: each conversation has one, and only its last word counts.

Counts are always of distinct voters, so that nobody is heard twice. A vote belongs to the app and the
environment in which the case was used, which need not be those where it was written.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from memory.cases.case import Case, Signal, Vote
from memory.cases.results import FeedbackTally
from memory.scope import Scope

MIN_SAMPLES: Final = 3
"""Fewer votes of an app or environment say nothing by themselves."""

_HELPFUL: Final = 0.1
_UNHELPFUL: Final = -0.2
_BY_SIGNAL: Final[dict[Signal, float]] = {"stale": -0.1, "success": 0.05, "rollback": -0.1}
_PLACES: Final = 4

Level = Literal["app_environment", "app", "global", "prior"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedTally:
    """The votes that tell most for a searcher, and where they were cast; `prior`: there are none."""

    tally: FeedbackTally
    level: Level


def cast(votes: Sequence[Vote], vote: Vote) -> Vote:
    """Give the vote that takes the place of its voter's earlier one among `votes`.

    What it leaves open stays as the earlier one had it; what is said of helpfulness then still holds
    for the content that it was said of.
    """
    earlier = next((one for one in votes if one.voter == vote.voter), None)
    if earlier is None:
        return vote
    judges = vote.helpful is not None or vote.signal == "success"
    return replace(
        vote,
        helpful=earlier.helpful if vote.helpful is None else vote.helpful,
        signal=vote.signal or earlier.signal,
        content_revision=vote.content_revision if judges else earlier.content_revision,
    )


def with_vote(votes: Sequence[Vote], vote: Vote) -> list[Vote]:
    """Give all votes once `vote` is cast, oldest first."""
    others = [one for one in votes if one.voter != vote.voter]
    return sorted([*others, cast(votes, vote)], key=lambda one: (one.at, one.voter))


def is_helpful(vote: Vote) -> bool:
    """Whether a vote speaks for a case; what led to success does, unless its voter says otherwise."""
    return vote.helpful is True or (vote.helpful is None and vote.signal == "success")


def confidence_of(stated: float, votes: Sequence[Vote]) -> float:
    """Give the confidence, 0 to 1, that the author's own and all votes come to, in any order."""
    return round(min(1.0, max(0.0, stated + sum(map(_delta, votes)))), _PLACES)


def tally(case: Case, votes: Sequence[Vote]) -> FeedbackTally:
    """Count the voters for and against a case, and those for it that did not write it."""
    helpful = {one.voter for one in votes if is_helpful(one)}
    return FeedbackTally(
        helpful=len(helpful),
        unhelpful=len({one.voter for one in votes if one.helpful is False}),
        conversations=len(helpful - {*case.authors}),
    )


def tally_for(case: Case, votes: Sequence[Vote], scope: Scope) -> ScopedTally:
    """Count the votes of the searcher's app and environment; where these are too few, of more.

    A level is passed over where it has fewer than three votes, and where the searcher names none.
    """
    of_app = [one for one in votes if one.app_code == scope.app_code]
    if scope.app_code is not None:
        here = [one for one in of_app if one.environment == scope.environment]
        if scope.environment is not None and total(counted := tally(case, here)) >= MIN_SAMPLES:
            return ScopedTally(tally=counted, level="app_environment")
        if total(counted := tally(case, of_app)) >= MIN_SAMPLES:
            return ScopedTally(tally=counted, level="app")
    counted = tally(case, votes)
    return ScopedTally(tally=counted, level="global" if total(counted) else "prior")


def total(counted: FeedbackTally) -> int:
    """How many votes say whether the case helped."""
    return counted.helpful + counted.unhelpful


def _delta(vote: Vote) -> float:
    helpful = 0.0 if vote.helpful is None else _HELPFUL if vote.helpful else _UNHELPFUL
    return helpful + (_BY_SIGNAL.get(vote.signal, 0.0) if vote.signal else 0.0)
