"""BM25 over an item's columns, with the counts of the owner's own rows.

The full-text index has a ranking of its own, which counts everyone's rows, so that what one user
remembers would change what another one finds. Here only the owner's rows count (Robertson and
Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009).
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final
from unicodedata import normalize

from memory.text.terms import beginning, is_character

_COLUMNS: Final = (1.5, 1.0, 0.7, 0.3)
"""Weights of title, body, the item before and the one after; those of neighbours were measured on
dialogues.
"""
_OWN_COLUMNS: Final = 2
"""The title and the body."""
_CHARACTER: Final = 0.35
_SATURATION: Final = 0.8
_LENGTH_SHARE: Final = 0.4
_STEM_KEEPS: Final = 2


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the question, and what it is worth."""

    text: str
    worth: float
    """Its weight times its rarity, above 0."""


@dataclass(frozen=True, slots=True)
class Text:
    """The words of a row, by column."""

    written: str
    """All words, each behind a space, with accents as characters of their own."""
    columns: Sequence[Sequence[str]]
    counts: Sequence[Mapping[str, int]]
    """How often the words of the questions stand there."""
    length: int

    @classmethod
    def of(cls, columns: Sequence[str], asked: frozenset[str]) -> "Text":
        """Split the columns as they stand in the index: title, body, the item before, the one
        after.
        """
        words = [column.split() for column in columns]
        counts = [
            {word: column.count(word) for word in asked.intersection(column)} for column in words
        ]
        written = f" {' '.join(columns)}"
        if not written.isascii():
            written = normalize("NFD", written)
        return cls(written, words, counts, sum(map(len, words)))

    def has(self, term: str) -> bool:
        """Return whether a word of the question stands there as it is."""
        return any(term in column for column in self.counts)

    def may_have_form_of(self, term: str) -> bool:
        """Return whether a word stands there that the index may take for another form of a term.

        A stem keeps the first two letters of a word, but not their accents. Chinese, Japanese and
        Korean words have no other forms.
        """
        if is_character(term[0]):
            return False
        if term.isascii() and self.written.isascii():
            return f" {term[:_STEM_KEEPS]}" in self.written
        return f" {normalize('NFD', term[0])[0]}" in self.written


def score(text: Text, terms: Sequence[Term], average_length: float) -> float:
    """Return the score of a row by the words that the index found in it; above 0 if any."""
    norm = 1 - _LENGTH_SHARE + _LENGTH_SHARE * text.length / max(1.0, average_length)
    return sum(
        term.worth * often * (1 + _SATURATION) / (often + _SATURATION * norm)
        for term in terms
        for often in [_often(text, term.text)]
    )


def has_any(text: Text, terms: AbstractSet[str], beginnings: tuple[str, ...]) -> bool:
    """Return whether a row itself, not its neighbours, has one of the words in some form."""
    title, body, *_ = text.counts
    return not (terms.isdisjoint(body) and terms.isdisjoint(title)) or any(
        word.startswith(beginnings) for column in text.columns[:_OWN_COLUMNS] for word in column
    )


def presence(term: str, worth: float) -> float:
    """Return a score for having a word, used before the row is read."""
    return worth * (_CHARACTER if is_character(term) else 1.0)


def _often(text: Text, term: str) -> float:
    """Return how often a word stands in a row, weighted by column.

    The index also finds other forms of a word; of these, words with the same beginning are counted.
    If there are none either, the word counts as standing there once.
    """
    if is_character(term):
        return _CHARACTER
    often = sum(
        weight * column.get(term, 0) for weight, column in zip(_COLUMNS, text.counts, strict=True)
    )
    return often or _often_by_beginning(text, term) or 1.0


def _often_by_beginning(text: Text, term: str) -> float:
    start = beginning(term)
    return sum(
        weight * sum(word.startswith(start) for word in column)
        for weight, column in zip(_COLUMNS, text.columns, strict=True)
    )


def average_length(texts: Mapping[int, Text]) -> float:
    """Return the mean length of some rows; 1 where there are none."""
    return sum(text.length for text in texts.values()) / len(texts) if texts else 1.0
