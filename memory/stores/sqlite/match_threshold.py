"""Decides whether a row that has some of a question's words is about the question.

Each word of the question has a share, larger for rare words. One row at least must have a good part of
the question, a smaller one if the question is long; once there is one, the others need less.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from memory.recall.question_words import ASKING_TERMS, QuestionWords
from memory.stores.sqlite.bm25 import rarity
from memory.stores.sqlite.owner_index import COMMON

_COVERED_TERMS: Final = 24
_EXPECTED_TERMS: Final = 36
"""A longer question, such as one with a dialogue's history, is treated as one with so many words."""
_LEAST_COVERAGE: Final = 0.22
_LEAST_COVERAGE_OF_WORDS: Final = 0.34
"""For a question without Chinese: more than one word of three. Some Chinese pairs span two words and
stand nowhere, so that less of them is expected."""
_LEAST_TERMS: Final = 1.5
_LEAST_SHARE: Final = 0.04
"""In a dialogue the answer often shares a single word with the question."""
_SHARE_OF_THE_FIRST: Final = 0.5
"""Outside of dialogues an item says by itself what it is about."""


@dataclass(frozen=True, slots=True)
class MatchThreshold:
    """What a question expects of a row."""

    worth: Mapping[str, float]
    """The share of each expected word; all together 1."""
    needed: float
    """The share that at least one row must have."""

    @classmethod
    def of(
        cls, wording: QuestionWords, count: Callable[[str], int], total: int
    ) -> "MatchThreshold":
        """Weigh a question's words by the number of rows that have them; without words, its characters.

        A word that no row has counts as much as the known ones do on average: how rare it is, is unknown.
        """
        expected = _expected(wording)
        asked = dict(islice(expected.items(), _COVERED_TERMS))
        known = {
            term: weight * rarity(total, count(term))
            for term, weight in asked.items()
            if count(term)
        }
        average = sum(known.values()) / len(known) if known else 1.0
        worth = {term: known.get(term, average) for term in asked}
        rare = {term: value for term, value in worth.items() if count(term) < COMMON}
        worth = rare or worth  # common words count only if there are no others
        whole = sum(worth.values()) or 1.0
        good = _LEAST_COVERAGE if wording.characters else _LEAST_COVERAGE_OF_WORDS
        words = min(len(expected) if wording.weights else 0, _EXPECTED_TERMS)
        return cls(
            {term: value / whole for term, value in worth.items()},
            min(good, _LEAST_TERMS / max(1, words)),
        )

    def coverage(
        self, having: Mapping[str, frozenset[int]], seqs: Sequence[int]
    ) -> dict[int, float]:
        """Return the share of the question that each row has, 0 to 1."""
        return {
            seq: min(1.0, sum(value for term, value in self.worth.items() if seq in having[term]))
            for seq in seqs
        }

    def is_about(self, share: float, best: float, *, in_dialogue: bool) -> bool:
        """Return whether a row with this share is about the question; `best` is the highest share."""
        if best < self.needed:
            return False
        least = _LEAST_SHARE if in_dialogue else _SHARE_OF_THE_FIRST * self.needed
        return share >= max(_LEAST_SHARE, least)


def _expected(wording: QuestionWords) -> Mapping[str, float]:
    """Return the words of the matter, or else all words, or else the characters."""
    of_the_matter = {
        term: weight for term, weight in wording.weights.items() if term not in ASKING_TERMS
    }
    return of_the_matter or wording.weights or dict.fromkeys(wording.characters, 1.0)
