"""Has the first few of an answer tell of different causes.

Of one cause there are many tellings once many incidents are recorded. Whoever looks for a cause gains
little from the fifth telling of a wrong one; the related cases of the first lead to the others.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memory.cases.ranking import RankedCase
from memory.cases.wording import telling_words

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
    causes = {
        one.case.case_id: frozenset(telling_words(one.case.content.root_cause))
        for one in ranked[:_POOL]
    }
    left = list(ranked[:_POOL])
    chosen: list[RankedCase] = []
    before: list[frozenset[str]] = []
    while left and len(chosen) < count:
        scored = [(_scored(one, causes[one.case.case_id], before), one) for one in left]
        score, best = max(scored, key=lambda pair: pair[0])  # of equal ones the first
        left.remove(best)
        before.append(causes[best.case.case_id])
        chosen.append(
            best
            if score == best.score
            else replace(best, score=score, why=f"{best.why}; its cause is told above")
        )
    return chosen


def _scored(one: RankedCase, cause: frozenset[str], before: Sequence[frozenset[str]]) -> float:
    return one.score * _AGAIN ** sum(_alike(cause, other) for other in before)


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    least = min(len(one), len(other))
    return least > 0 and len(one & other) >= _ALIKE * least
