"""Whether what has some of a question's words is about the question.

How much of the question a row has is counted by what its words are worth: a rare one tells more. One row at
least must have a good part of it, less of a long question; once there is one, the others need less.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from memory.recall.question_words import ASKING_TERMS, QuestionWords
from memory.stores.sqlite.word_counts import COMMON
from memory.stores.sqlite.word_scoring import rarity

_COVERED_TERMS: Final = 24
_EXPECTED_TERMS: Final = 36
"""Of a longer question, a dialogue's history say, no more than of one with so many words is expected."""
_LEAST_COVERAGE: Final = 0.22
_LEAST_COVERAGE_OF_WORDS: Final = 0.34
"""A question of words alone: more than one word of three. Chinese pairs also span two words, and such a
pair stands nowhere, so that less of them is to be expected."""
_LEAST_TERMS: Final = 1.5
_LEAST_SHARE: Final = 0.04
"""In a dialogue the answer often shares a single word with what is asked."""
_SHARE_OF_THE_FIRST: Final = 0.5
"""Elsewhere an item says all of what it is about by itself."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What a question expects of a row."""

    worth: Mapping[str, float]
    """Of each word that is expected; all together 1."""
    needed: float
    """So much of it at least one row must have."""

    @classmethod
    def of(cls, wording: QuestionWords, count: Callable[[str], int], total: int) -> "Gate":
        """Weigh a question's words by how many rows of all have them; without words its characters.

        A word that stands nowhere counts as asked, but for no more than those that are known do on
        average: nobody knows how rare it is.
        """
        expected = _expected(wording)
        asked = dict(islice(expected.items(), _COVERED_TERMS))
        known = {
            one: weight * rarity(total, count(one)) for one, weight in asked.items() if count(one)
        }
        average = sum(known.values()) / len(known) if known else 1.0
        worth = {one: known.get(one, average) for one in asked}
        telling = {one: value for one, value in worth.items() if count(one) < COMMON}
        worth = telling or worth  # what stands nearly everywhere tells nothing beside what does not
        whole = sum(worth.values()) or 1.0
        good = _LEAST_COVERAGE if wording.characters else _LEAST_COVERAGE_OF_WORDS
        words = min(len(expected) if wording.weights else 0, _EXPECTED_TERMS)
        return cls(
            {one: value / whole for one, value in worth.items()},
            min(good, _LEAST_TERMS / max(1, words)),
        )

    def coverage(
        self, having: Mapping[str, frozenset[int]], seqs: Sequence[int]
    ) -> dict[int, float]:
        """Tell of each row how much of the question it has, 0 to 1."""
        return {
            seq: min(1.0, sum(value for one, value in self.worth.items() if seq in having[one]))
            for seq in seqs
        }

    def lets_in(self, share: float, best: float, *, in_dialogue: bool) -> bool:
        """Whether a row with this share is about the question, where the best one has that share."""
        if best < self.needed:
            return False
        return share >= (
            _LEAST_SHARE if in_dialogue else max(_LEAST_SHARE, _SHARE_OF_THE_FIRST * self.needed)
        )


def _expected(wording: QuestionWords) -> Mapping[str, float]:
    """Give what a row is expected to have: the words of the matter, or whatever else there is."""
    of_the_matter = {
        one: weight for one, weight in wording.weights.items() if one not in ASKING_TERMS
    }
    return of_the_matter or wording.weights or dict.fromkeys(wording.characters, 1.0)
