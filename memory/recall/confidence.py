"""How likely a found item answers a question: six measures and a fitted curve.

The coefficients are a logistic regression of `bench/train_confidence.py` on sets by three authors; `bench/README.md`
has what it shows and misses at the threshold.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from math import exp, log
from typing import Final, NamedTuple

from memory.recall.question_words import STOP_CHARACTERS, QuestionWords
from memory.terms import beginning, is_character, terms

LEAST_CONFIDENCE: Final = 0.45
"""Nothing is shown for a question if no item has as much."""
_INTERCEPT: Final = -3.27
_COEFFICIENTS: Final = (3.35, 1.55, -1.11, -1.09, -0.37, -0.39)
"""Of the fields of `Measures`, in their order."""
_WORDLESS: Final = 0.22
"""How likely an item is an answer that has hardly any of the words and whose vector says nothing."""
_MOST_LIKELY: Final = 0.99
"""Where words can be outweighed."""
_UNKNOWN_WORD: Final = 0.5
"""Of the average of the known ones: how rare it is, is unknown, and the answer may have another one."""
_UNKNOWN_LEAST: Final = 0.8
"""The known ones may all be common, which an unknown one is not."""
_MAX_TERMS: Final = 24
_LEAST_SHARE: Final = 0.2
"""A long question shares some word with most items."""
_LEAST_LENGTH: Final = 3
_MOST_LENGTH: Final = 8
_MOST_NAMES: Final = 2
_READ_CHARS: Final = 3000
_SENTENCES: Final = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_FITTING_WORTH: Final = 1.0
"""Of a case: what a word is worth that stands in no case."""
_FITTING_SHARE: Final = 0.6
"""Of a case's question."""
_LEAST_TOTAL: Final = 1000
"""In a smaller memory words count as rare as in one of this size: it is too small to tell which are."""


class Measures(NamedTuple):
    """What tells whether an item answers a question."""

    share: float
    """The square of the share of the question's words that the item has, 0 to 1; rare words count more."""
    length: float
    """Of the question: the logarithm of the number of its words, as if it had three to eight."""
    lacks: float
    """1 if the question asks for a number, a price or a time, and the item has none near the words."""
    names: float
    """How many words of names the item lacks, at most 2."""
    focus: float
    """How many words of what the question asks for the item has."""
    missing: float
    """What the rarest word of what the question asks for is worth that the item lacks."""

    @property
    def confidence(self) -> float:
        """How likely the item is an answer, 0 to 1; 0 if it has hardly any of the words."""
        if self.share < _LEAST_SHARE**2:
            return 0.0
        measured = zip(_COEFFICIENTS, self, strict=True)
        return 1 / (1 + exp(-_INTERCEPT - sum(factor * value for factor, value in measured)))


@dataclass(frozen=True, slots=True)
class Expectation:
    """The words of a question that an answer is expected to have."""

    worth: Mapping[str, float]
    """Above 0 for each word; 1 for one that stands nowhere else."""
    unknown: float
    """What the words that stand nowhere are worth in all."""
    asked: Sequence[str]
    """All of the words."""
    wording: QuestionWords

    @classmethod
    def of(
        cls,
        terms: Sequence[str],
        count: Callable[[str], int],
        total: int,
        wording: QuestionWords,
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
        average = max(_UNKNOWN_LEAST, sum(known.values()) / len(known)) if known else 1.0
        ends = {term[-1] for term in known}, {term[0] for term in known}
        unknown = [
            1.0 if is_character(term[0]) else _UNKNOWN_WORD
            for term in asked
            if term not in known and not _spans_words(term, *ends)
        ]
        return cls(known, average * sum(unknown), asked, wording)

    def share(self, having: AbstractSet[str]) -> float:
        """Return the share of the question that the words of an item are, 0 to 1."""
        known = sum(value for term, value in self.worth.items() if term in having)
        return known / (sum(self.worth.values()) + self.unknown or 1.0)

    def measures(self, having: AbstractSet[str], body: str) -> Measures:
        """Measure an item with these of the words."""
        chars = sum(1 if is_character(term[0]) else 2 for term in self.asked)
        form = self.wording.form
        lacks = form is not None and form.search(_nearest(body[:_READ_CHARS], having)) is None
        focus = self.wording.focus.intersection(self.asked)
        named = self.wording.named.intersection(self.asked)
        lacking = (self.worth.get(term, 1.0) for term in focus - having)
        return Measures(
            self.share(having) ** 2,
            log(1 + min(max(chars / 2, _LEAST_LENGTH), _MOST_LENGTH)),
            float(lacks),
            min(len(named - having), _MOST_NAMES),
            len(focus & having),
            max(lacking, default=0.0),
        )


def case_confidence(worth: float, share: float) -> float:
    """Return how likely a case fits a question, 0 to 1; cases with less than `LEAST_CONFIDENCE` do not fit.

    Few words of a report recur in another one. So a case fits if the words that it shares with the question
    are worth as much as a word that stands in no case (1.0), or are most of the question.
    """
    return min(1.0, LEAST_CONFIDENCE * max(worth / _FITTING_WORTH, share / _FITTING_SHARE))


def weighed(confidence: float, evidence: float) -> float:
    """Return how likely an item is an answer: by its words, and by evidence that changes the log-odds."""
    likely = min(confidence or _WORDLESS, _MOST_LIKELY)
    return 1 / (1 + (1 / likely - 1) * exp(-evidence))


def _nearest(body: str, having: AbstractSet[str]) -> str:
    """Return the sentence with most of the words, in whatever form, and the next one."""
    sentences = _SENTENCES.split(body)
    words = [terms(sentence) for sentence in sentences]
    counts = [
        sum(any(word.startswith(beginning(term)) for word in own) for term in having)
        for own in words
    ]
    best = counts.index(max(counts))
    return " ".join(sentences[best : best + 2])


def rarity(total: int, count: int) -> float:
    """Return what a word is worth that stands in `count` rows of `total`; above 0."""
    return log(1 + (max(total, count) - count + 0.5) / (count + 0.5))


def _spans_words(term: str, last: AbstractSet[str], first: AbstractSet[str]) -> bool:
    is_pair = len(term) > 1 and is_character(term[0])
    return is_pair and (
        term[0] in last or term[-1] in first or any(char in STOP_CHARACTERS for char in term)
    )
