"""Has the first few of an answer tell of different causes.

Of one cause there are many tellings once many incidents are recorded. Whoever looks for a cause gains
little from the fifth telling of a wrong one; the related cases of the first lead to the others.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memory.cases.fingerprint import words
from memory.cases.ranking import RankedCase
from memory.recall.question_words import STOP_TERMS
from memory.terms import terms

_POOL: Final = 40
_AGAIN: Final = 0.5
"""What a case is worth beside one of a like cause that is shown before it; for each such one."""
_ALIKE: Final = 0.34
"""Root causes that share so much of the shorter one's telling words count as alike here."""


def varied(ranked: Sequence[RankedCase], count: int) -> list[RankedCase]:
    """Choose at most `count` of ranked cases, best first; what only tells a cause again steps down.

    The best one stays the best, and where no two causes are alike the order stays. A case without a root
    cause is like none.
    """
    left = list(ranked[:_POOL])
    chosen: list[RankedCase] = []
    before: list[frozenset[str]] = []
    while left and len(chosen) < count:
        best, score = _next(left, before)
        left.remove(best)
        before.append(_cause(best))
        chosen.append(
            best
            if score == best.score
            else replace(best, score=score, why=f"{best.why}; its cause is told above")
        )
    return chosen


def _next(left: Sequence[RankedCase], before: Sequence[frozenset[str]]) -> tuple[RankedCase, float]:
    """Choose the one that scores most beside what was chosen before, of equal ones the first.

    Nothing scores more than it did, so those behind need not be looked at once their scores are no higher:
    to take the words out of a cause is most of the work.
    """
    best, score = left[0], _scored(left[0], before)
    for candidate in left[1:]:
        if candidate.score <= score:
            break
        if (its := _scored(candidate, before)) > score:
            best, score = candidate, its
    return best, score


def _scored(one: RankedCase, before: Sequence[frozenset[str]]) -> float:
    if not before:
        return one.score
    cause = _cause(one)
    return one.score * _AGAIN ** sum(_alike(cause, other) for other in before)


def _cause(one: RankedCase) -> frozenset[str]:
    cause = " ".join(words(one.case.content.root_cause))
    return frozenset(terms(cause)) - STOP_TERMS


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    least = min(len(one), len(other))
    return least > 0 and len(one & other) >= _ALIKE * least
