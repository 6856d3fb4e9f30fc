"""Makes the first answers show different causes.

After many incidents there are many reports of one cause. A fifth report of a wrong cause helps little, and
the related cases of the first one lead to the others.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memory.cases.fingerprint import words
from memory.cases.ranking import RankedCase
from memory.recall.question_words import STOP_TERMS
from memory.terms import terms

_POOL: Final = 40
_REPEATED: Final = 0.5
"""Factor on the score of a case for each case of a similar cause before it."""
_SIMILAR: Final = 0.34
"""Share of the shorter root cause's terms that makes two causes similar."""


def varied(ranked: Sequence[RankedCase], count: int) -> list[RankedCase]:
    """Return at most `count` of the ranked cases, best first; repeated causes score less.

    A case without a root cause is similar to none.
    """
    left = [(case, _cause(case), case.score) for case in ranked[:_POOL]]
    chosen: list[RankedCase] = []
    while left and len(chosen) < count:
        best, cause, score = max(left, key=lambda entry: entry[2])
        chosen.append(
            best
            if score == best.score
            else replace(best, score=score, why=f"{best.why}; its cause is told above")
        )
        left = [
            (case, other, value * (_REPEATED if _similar(cause, other) else 1.0))
            for case, other, value in left
            if case is not best
        ]
    return chosen


def _cause(ranked: RankedCase) -> frozenset[str]:
    return frozenset(terms(" ".join(words(ranked.case.content.root_cause)))) - STOP_TERMS


def _similar(one: frozenset[str], other: frozenset[str]) -> bool:
    least = min(len(one), len(other))
    return least > 0 and len(one & other) >= _SIMILAR * least
