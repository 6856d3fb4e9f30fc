"""How likely a found item answers a question: two measures and a fitted curve.

The measures are the share of the question's words that the item has, rare words counting more, and how
much its words tell in all. The coefficients are a logistic regression on the tuning half of `bench/person`;
`bench/person` has what it shows and misses at the threshold.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from math import exp, log
from typing import Final

from memory.recall.question_words import STOP_CHARACTERS
from memory.terms import is_character

LEAST_CONFIDENCE: Final = 0.05
"""Nothing is shown for a question if no item has as much."""
_INTERCEPT: Final = -9.0
_OF_SHARE: Final = 6.2
_OF_EVIDENCE: Final = 4.5
_UNKNOWN_WORD: Final = 0.5
"""Of the average of the known ones: how rare it is, is unknown, and the answer may have another one."""
_MAX_TERMS: Final = 24
_LEAST_TOTAL: Final = 1000
"""In a smaller memory words count as rare as in one of this size: it is too small to tell which are."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The words of a question that an answer is expected to have."""

    worth: Mapping[str, float]
    """Above 0 for each word; 1 for one that stands nowhere else."""
    unknown: float
    """What the words that stand nowhere are worth in all."""

    @classmethod
    def of(
        cls,
        terms: Sequence[str],
        count: Callable[[str], int],
        total: int,
    ) -> "Expectation":
        """Weigh words by the number of rows that have them, of `total`.

        A pair of Chinese characters that no row has is not expected if it seems to span two words: if one
        of the characters is a particle, or the last or first one of a known pair.
        """
        asked = list(islice(terms, _MAX_TERMS))
        among = max(total, _LEAST_TOTAL)
        known = {
            term: rarity(among, rows) / rarity(among, 0) for term in asked if (rows := count(term))
        }
        average = sum(known.values()) / len(known) if known else 1.0
        ends = {term[-1] for term in known}, {term[0] for term in known}
        unknown = [
            1.0 if is_character(term[0]) else _UNKNOWN_WORD
            for term in asked
            if term not in known and not _spans_words(term, *ends)
        ]
        return cls(known, average * sum(unknown))

    def share(self, having: AbstractSet[str]) -> float:
        """Return the share of the question that the words of an item are, 0 to 1."""
        return self._sum(having) / (sum(self.worth.values()) + self.unknown or 1.0)

    def confidence(self, having: AbstractSet[str]) -> float:
        """Return how likely an item with these of the words is an answer, 0 to 1."""
        evidence = log(1 + self._sum(having))
        return 1 / (1 + exp(-_INTERCEPT - _OF_SHARE * self.share(having) - _OF_EVIDENCE * evidence))

    def _sum(self, having: AbstractSet[str]) -> float:
        return sum(value for term, value in self.worth.items() if term in having)


def rarity(total: int, count: int) -> float:
    """Return what a word is worth that stands in `count` rows of `total`; above 0."""
    return log(1 + (max(total, count) - count + 0.5) / (count + 0.5))


def _spans_words(term: str, last: AbstractSet[str], first: AbstractSet[str]) -> bool:
    is_pair = len(term) > 1 and is_character(term[0])
    return is_pair and (
        term[0] in last or term[-1] in first or any(char in STOP_CHARACTERS for char in term)
    )
