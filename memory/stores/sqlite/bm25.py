"""BM25 over an item's columns, with the counts of the owner's own rows.

The full-text index has a ranking of its own, which counts everyone's rows, so that what one user
remembers would change what another one finds. Here only the owner's rows count (Robertson and
Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memory.text.terms import is_character

_COLUMNS: Final = (1.5, 1.0, 0.7, 0.3)
"""Weights of title, body, the item before and the one after; those of neighbours were measured on
dialogues.
"""
_CHARACTER: Final = 0.35
_SATURATION: Final = 0.8
_LENGTH_SHARE: Final = 0.4


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the question, and what it is worth."""

    stem: str
    worth: float
    """Its weight times its rarity, above 0."""


@dataclass(frozen=True, slots=True)
class Text:
    """The words of a row, by column."""

    counts: Sequence[Mapping[str, int]]
    """How often words with the stems of the questions' stand there."""
    characters: str
    """The single Chinese, Japanese and Korean ones of the title and the body."""
    length: int

    @classmethod
    def of(
        cls, columns: Sequence[Sequence[str]], characters: str, forms: Mapping[str, str]
    ) -> "Text":
        """Count the words of title, body, the item before and the one after that are forms of the
        questions'.
        """
        counts = [_counts(column, forms) for column in columns]
        return cls(counts, characters, sum(map(len, columns)))

    def has(self, stem: str) -> bool:
        """Return whether a word of this stem stands there."""
        return any(stem in column for column in self.counts)

    def has_own(self, stems: Iterable[str]) -> bool:
        """Return whether the row itself, not its neighbours, has a word of one of the stems."""
        title, body, *_ = self.counts
        return any(stem in body or stem in title for stem in stems)


def _counts(column: Sequence[str], forms: Mapping[str, str]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for stem in filter(None, map(forms.get, column)):
        counts[stem] = counts.get(stem, 0) + 1
    return counts


def score(text: Text, terms: Sequence[Term], average_length: float) -> float:
    """Return the score of a row by the words that the index found in it; above 0 if any."""
    norm = 1 - _LENGTH_SHARE + _LENGTH_SHARE * text.length / max(1.0, average_length)
    return sum(
        term.worth * often * (1 + _SATURATION) / (often + _SATURATION * norm)
        for term in terms
        for often in [_often(text, term.stem)]
    )


def presence(term: str, worth: float) -> float:
    """Return a score for having a word, used before the row is read."""
    return worth * (_CHARACTER if is_character(term) else 1.0)


def _often(text: Text, stem: str) -> float:
    """Return how often a word stands in a row, in any form, weighted by column."""
    if is_character(stem):
        return _CHARACTER
    often = sum(
        weight * column.get(stem, 0) for weight, column in zip(_COLUMNS, text.counts, strict=True)
    )
    return often or 1.0


def average_length(texts: Mapping[int, Text]) -> float:
    """Return the mean length of some rows; 1 where there are none."""
    return sum(text.length for text in texts.values()) / len(texts) if texts else 1.0
