"""BM25 over an item's columns, with the counts of the owner's own rows.

The full-text index has a ranking of its own, which counts everyone's rows, so that what one user
remembers would change what another one finds. Here only the owner's rows count (Robertson and
Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009).
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final
from unicodedata import normalize

from memory.stores.sqlite.stems import AskedWord, Stems
from memory.text.terms import is_character

_TITLE: Final = 1.5
"""Weight of the title beside the body."""
_BEFORE: Final = 0.7
_AFTER: Final = 0.3
"""Weights of the item before and the one after, measured on dialogues."""
NOWHERE: Final = (0, 0, 0, 0)
"""The counts of a word that a row does not have."""
_ACCENTED: Final = re.compile("[\u00c0-\u10ff\u1e00-\u1fff]")
_CHARACTER: Final = 0.35
_SATURATION: Final = 0.8
_LENGTH_SHARE: Final = 0.4


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the question, and what it is worth."""

    word: AskedWord
    worth: float
    """Its weight times its rarity, above 0."""


class Text:
    """The words of a row, by column: title, body, the item before, the one after."""

    def __init__(self, columns: Sequence[str], characters: str, stems: Stems) -> None:
        """Take the columns as they are in the index, and the single Chinese, Japanese and Korean
        characters of the title and the body.
        """
        self.characters = characters
        self.length = sum(column.count(" ") + 1 for column in columns if column)
        self._ends = tuple(accumulate(len(column) + 2 for column in columns))
        self._whole = "".join(f" {column} " for column in columns)
        if not self._whole.isascii() and _ACCENTED.search(self._whole):
            self._whole = _folded(self._whole)
        self._stems = stems
        self._counts: dict[str, Sequence[int]] = {}

    def counts(self, word: AskedWord) -> Sequence[int]:
        """Return how often a word stands in each column, in any form; `NOWHERE` if it does not."""
        known = self._counts.get(word.stem)
        if known is None:
            known = self._counts[word.stem] = self._counted(f" {word.begin}", word.stem)
        return known

    def has(self, word: AskedWord) -> bool:
        """Return whether a word stands there in some form."""
        return self.counts(word) is not NOWHERE

    def has_own(self, words: Iterable[AskedWord]) -> bool:
        """Return whether the row itself, not its neighbours, has one of the words in some form."""
        return any(counts[0] or counts[1] for counts in map(self.counts, words))

    def _counted(self, begin: str, stem: str) -> Sequence[int]:
        whole, is_form = self._whole, self._stems.is_form_blocking
        at, counts = whole.find(begin), list[int]()
        while at >= 0:
            end = whole.find(" ", at + 1)
            if is_form(whole[at + 1 : end], stem):
                counts = counts or [*NOWHERE]
                counts[bisect_right(self._ends, at)] += 1
            at = whole.find(begin, end)
        return counts or NOWHERE


def _folded(text: str) -> str:
    """Return a text without the accents of its letters, which stems do not have."""
    return _ACCENTED.sub(lambda letter: normalize("NFD", letter[0])[0], text)


def score(text: Text, terms: Sequence[Term], average_length: float) -> float:
    """Return the score of a row by the words that the index found in it; above 0 if any."""
    norm = 1 - _LENGTH_SHARE + _LENGTH_SHARE * text.length / max(1.0, average_length)
    points = 0.0
    for term in terms:
        often = _often(text, term.word)
        points += term.worth * often * (1 + _SATURATION) / (often + _SATURATION * norm)
    return points


def presence(term: str, worth: float) -> float:
    """Return a score for having a word, used before the row is read."""
    return worth * (_CHARACTER if is_character(term) else 1.0)


def _often(text: Text, word: AskedWord) -> float:
    """Return how often a word stands in a row, in any form, weighted by column."""
    if is_character(word.stem):
        return _CHARACTER
    title, body, before, after = text.counts(word)
    return _TITLE * title + body + _BEFORE * before + _AFTER * after or 1.0


def average_length(texts: Mapping[int, Text]) -> float:
    """Return the mean length of some rows; 1 where there are none."""
    return sum(text.length for text in texts.values()) / len(texts) if texts else 1.0
