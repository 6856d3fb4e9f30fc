"""How much of a question an item's words cover; rare words weigh more."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from math import log
from typing import Final

from memory.recall.question_words import STOP_CHARACTERS
from memory.text.terms import is_character

_UNKNOWN_WORD: Final = 0.5
"""Of the average of the known ones: how rare it is, is unknown, and the answer may have another
one.
"""
_UNKNOWN_LEAST: Final = 0.8
"""The known ones may all be common, which an unknown one is not."""
_MAX_TERMS: Final = 24
_LEAST_TOTAL: Final = 1000
"""In a smaller memory words count as rare as in one of this size: it is too small to tell which
are.
"""
_LEAST_COVERAGE: Final = 0.1
_FITTING_WORTH: Final = 1.0
"""Of a case: what a word is worth that stands in no case."""
_FITTING_COVERAGE: Final = 0.6
"""Of a case's question."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The words of a question that an answer is expected to have."""

    worth: Mapping[str, float]
    """Above 0 for each word; 1 for one that stands nowhere else."""
    unknown: float
    """What the words that stand nowhere are worth in all."""

    @classmethod
    def of(cls, terms: Sequence[str], count: Callable[[str], int], total: int) -> "Expectation":
        """Weigh words by the number of rows that have them, of `total`.

        A pair of Chinese characters that no row has is not expected if it seems to span two words:
        if one of the characters is a particle, or the last or first one of a known pair.
        """
        asked = list(islice(terms, _MAX_TERMS))
        among = max(total, _LEAST_TOTAL)
        known = {
            term: rarity(among, rows) / rarity(among, 0) for term in asked if (rows := count(term))
        }
        average = max(_UNKNOWN_LEAST, sum(known.values()) / len(known)) if known else 1.0
        ends = {term[-1] for term in known}, {term[0] for term in known}
        unknown = [
            1.0 if is_character(term[0]) else _UNKNOWN_WORD
            for term in asked
            if term not in known and not _spans_words(term, *ends)
        ]
        return cls(known, average * sum(unknown))

    def coverages(
        self, having: Mapping[str, AbstractSet[int]], rows: Iterable[int]
    ) -> dict[int, float]:
        """Return the share of the question that the words of each row are, 0 to 1.

        `having` are the rows that have each word of `worth`.
        """
        known = dict.fromkeys(rows, 0.0)
        for term, value in self.worth.items():
            for row in having[term] & known.keys():
                known[row] += value
        whole = sum(self.worth.values()) + self.unknown or 1.0
        return {row: value / whole for row, value in known.items()}


def is_weak(coverage: float) -> bool:
    """Return whether an item has hardly any of the words."""
    return coverage < _LEAST_COVERAGE


def is_weak_case(coverage: float, worth: float) -> bool:
    """Return whether a case does not fit a question.

    Few words of a report recur in another one. So a case fits if the words that it shares with the
    question are worth as much as a word that stands in no case (1.0), or are most of the question.
    """
    return worth < _FITTING_WORTH and coverage < _FITTING_COVERAGE


def rarity(total: int, count: int) -> float:
    """Return what a word is worth that stands in `count` rows of `total`; above 0."""
    return log(1 + (max(total, count) - count + 0.5) / (count + 0.5))


def _spans_words(term: str, last: AbstractSet[str], first: AbstractSet[str]) -> bool:
    is_pair = len(term) > 1 and is_character(term[0])
    return is_pair and (
        term[0] in last or term[-1] in first or any(char in STOP_CHARACTERS for char in term)
    )
