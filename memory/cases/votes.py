"""What the votes on a case come to: each conversation has one, and only its last word counts.

Counts are always of distinct voters, so that nobody is heard twice, and no vote speaks for a case and
against it. It belongs to the app and the environment in which the case was used, which need not be those
where it was written, and to the words that it was cast on: what was said of older ones vouches for no new
ones. Speaking against them it still counts, or whoever is judged would change a sign; not where a person
rewrote them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Final, Literal

from memory.cases.case import Case, Signal, Vote
from memory.cases.results import FeedbackTally
from memory.scope import Scope

MIN_SAMPLES: Final = 3
"""Fewer votes of an app or environment say nothing by themselves."""

_HELPFUL: Final = 0.1
_UNHELPFUL: Final = -0.2
_SUCCESS: Final = 0.05
_AGAINST: Final[dict[Signal | None, float]] = {"stale": -0.1, "rollback": -0.1}
"""Signals that speak against a case."""
_WARNINGS: Final[frozenset[Signal | None]] = frozenset({"conflict", "high_risk"})
"""Signals that judge nothing: a person should look."""
_PLACES: Final = 4

Level = Literal["app_environment", "app", "global", "prior"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedTally:
    """The votes that tell most for a searcher, and where they were cast; `prior`: there are none."""

    tally: FeedbackTally
    level: Level


def cast(votes: Sequence[Vote], vote: Vote) -> Vote:
    """Give the vote that takes the place of its voter's earlier one among `votes`.

    What it leaves open stays as the earlier one had it, unless that speaks for the other side or was said
    of other words. What does not judge leaves the earlier judgement, whole, on the words that it was cast
    on. A warning has a place of its own beside it; it stays until its voter finds the case helpful.
    """
    said = _warning_apart(vote)
    found = next((each_vote for each_vote in votes if each_vote.voter == vote.voter), None)
    if found is None:
        return said
    earlier = _warning_apart(found)
    warner = said if said.warning is not None or is_helpful(said) else earlier
    said = replace(said, warning=warner.warning, warned_on=warner.warned_on)
    if not _judges(said):
        kept, revision = earlier.helpful, earlier.content_revision
        return replace(said, helpful=kept, signal=earlier.signal, content_revision=revision)
    if earlier.content_revision != said.content_revision:
        return said
    is_for = is_helpful(said)
    other_side = {*_AGAINST} if is_for else {"success"}
    signal = said.signal or earlier.signal
    return replace(
        said,
        helpful=is_for if said.helpful is None and earlier.helpful is is_for else said.helpful,
        signal=said.signal if signal in other_side else signal,
    )


def with_vote(votes: Sequence[Vote], vote: Vote) -> list[Vote]:
    """Give all votes once `vote` is cast, oldest first."""
    others = [each_vote for each_vote in votes if each_vote.voter != vote.voter]
    return sorted([*others, cast(votes, vote)], key=lambda other: (other.at, other.voter))


def is_helpful(vote: Vote) -> bool:
    """Whether a vote speaks for a case; what led to success does. What speaks against it in any way does not."""
    return _says_so(vote) and not _is_against(vote)


def is_for_and_against(vote: Vote) -> bool:
    """Whether a vote speaks for a case and against it; the latter is what counts."""
    return _says_so(vote) and _is_against(vote)


def counted(case: Case, votes: Sequence[Vote]) -> list[Vote]:
    """Give those that count at all: on what the case says, or on older words that no person rewrote since."""
    return [vote for vote in votes if vote.content_revision >= case.judged_from]


def on_present_words(case: Case, votes: Sequence[Vote]) -> list[Vote]:
    """Give those that were cast on what the case says now."""
    return [vote for vote in votes if vote.content_revision >= case.content_revision]


def standing_signals(case: Case, votes: Sequence[Vote]) -> set[Signal | None]:
    """Give the signals that voters stand by and that count at all, their warnings among them."""
    warnings = {vote.warning for vote in votes if vote.warned_on >= case.judged_from}
    return {vote.signal for vote in counted(case, votes)} | warnings


def confidence_of(case: Case, votes: Sequence[Vote]) -> float:
    """Give the confidence, 0 to 1, that what was stated and the votes come to, in any order.

    Those on older words take from it together, and never add to it.
    """
    present = on_present_words(case, votes)
    older = [vote for vote in counted(case, votes) if vote.content_revision < case.content_revision]
    moved = fsum(map(_delta, present)) + min(0.0, fsum(map(_delta, older)))
    return round(min(1.0, max(0.0, case.stated_confidence + moved)), _PLACES)


def tally(case: Case, votes: Sequence[Vote]) -> FeedbackTally:
    """Count the voters for and against what a case says now, and those for it that did not write it."""
    present = on_present_words(case, votes)
    helpful = {vote.voter for vote in present if is_helpful(vote)}
    return FeedbackTally(
        helpful=len(helpful),
        unhelpful=len({vote.voter for vote in present if vote.helpful is False}),
        conversations=len(helpful - {*case.authors}),
    )


def tally_for(case: Case, votes: Sequence[Vote], scope: Scope) -> ScopedTally:
    """Count the votes of the searcher's app and environment; where these are too few, of more.

    A level is passed over where it has fewer than three votes, and where the searcher names none.
    """
    of_app = [vote for vote in votes if vote.app_code == scope.app_code]
    if scope.app_code is not None:
        here = [vote for vote in of_app if vote.environment == scope.environment]
        if scope.environment is not None and total(found := tally(case, here)) >= MIN_SAMPLES:
            return ScopedTally(tally=found, level="app_environment")
        if total(found := tally(case, of_app)) >= MIN_SAMPLES:
            return ScopedTally(tally=found, level="app")
    found = tally(case, votes)
    return ScopedTally(tally=found, level="global" if total(found) else "prior")


def total(found: FeedbackTally) -> int:
    """How many votes say whether the case helped."""
    return found.helpful + found.unhelpful


def _warning_apart(vote: Vote) -> Vote:
    """Give a vote with what it warns of in the place for that."""
    if vote.signal not in _WARNINGS:
        return vote
    return replace(vote, signal=None, warning=vote.signal, warned_on=vote.content_revision)


def _judges(vote: Vote) -> bool:
    return is_helpful(vote) or _is_against(vote)


def _says_so(vote: Vote) -> bool:
    return vote.helpful is True or vote.signal == "success"


def _is_against(vote: Vote) -> bool:
    return vote.helpful is False or vote.signal in _AGAINST


def _delta(vote: Vote) -> float:
    if _is_against(vote):
        return (_UNHELPFUL if vote.helpful is False else 0.0) + _AGAINST.get(vote.signal, 0.0)
    helpful = _HELPFUL if vote.helpful else 0.0
    return helpful + (_SUCCESS if vote.signal == "success" else 0.0)
