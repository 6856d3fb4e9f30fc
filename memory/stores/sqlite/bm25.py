"""BM25 over an item's columns, with the counts of the owner's own rows.

The full-text index has a ranking of its own, which counts everyone's rows, so that what one user
remembers would change what another one finds. Here only the owner's rows count (Robertson and
Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009).
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
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


class Texts:
    """The words of some rows as one text, in which a word is looked for in all of them at once."""

    def __init__(self, rows: Iterable[tuple[int, Sequence[str]]], stems: Stems) -> None:
        """Take the columns of each row as they are in the index: title, body, the item before, the
        one after.
        """
        self._stems = stems
        self._places: list[tuple[int, int]] = []
        self._ends: list[int] = []
        self.lengths: dict[int, int] = {}
        parts: list[str] = []
        end = 0
        for seq, columns in rows:
            self.lengths[seq] = sum(column.count(" ") + 1 for column in columns if column)
            for number, column in enumerate(columns):
                if column:
                    parts.append(f" {column} ")
                    end += len(column) + 2
                    self._ends.append(end)
                    self._places.append((seq, number))
        self._whole = "".join(parts)
        if not self._whole.isascii() and _ACCENTED.search(self._whole):
            self._whole = _folded(self._whole)
        self._counts: dict[AskedWord, Mapping[int, Sequence[int]]] = {}

    def counts(self, word: AskedWord) -> Mapping[int, Sequence[int]]:
        """Return, of the rows that have a word in any form, how often it stands in each column."""
        known = self._counts.get(word)
        if known is None:
            known = self._counts[word] = self._counted(word)
        return known

    def _counted(self, word: AskedWord) -> Mapping[int, Sequence[int]]:
        whole, begin = self._whole, f" {word.begin}"
        alike: list[tuple[int, str]] = []
        at = whole.find(begin)
        while at >= 0:
            end = whole.find(" ", at + 1)
            alike.append((at, whole[at + 1 : end]))
            at = whole.find(begin, end)
        stems = self._stems.of_blocking(form for _, form in alike)
        counts: dict[int, list[int]] = {}
        for at, form in alike:
            if stems[form] == word.stem:
                seq, column = self._places[bisect_right(self._ends, at)]
                counts.setdefault(seq, [0, 0, 0, 0])[column] += 1
        return counts


def _folded(text: str) -> str:
    """Return a text without the accents of its letters, which stems do not have."""
    return _ACCENTED.sub(lambda letter: normalize("NFD", letter[0])[0], text)


def scores(
    texts: Texts,
    seqs: Collection[int],
    terms: Iterable[tuple[Term, AbstractSet[int] | None]],
) -> tuple[dict[int, float], set[int]]:
    """Return the score of some of the rows by the words that each has, and the rows that have one
    of the words themselves, not only beside them.

    Beside a term stand the rows that have it by the index; None: those in whose texts it stands.
    """
    average = max(1.0, sum(texts.lengths[seq] for seq in seqs) / max(1, len(seqs)))
    norms = {seq: 1 - _LENGTH_SHARE + _LENGTH_SHARE * texts.lengths[seq] / average for seq in seqs}
    points = dict.fromkeys(norms, 0.0)
    own: set[int] = set()
    for term, found in terms:
        is_single = is_character(term.word.stem)
        counts = {} if is_single and found is not None else texts.counts(term.word)
        worth = term.worth * (1 + _SATURATION)
        for seq in points.keys() & (counts.keys() if found is None else found):
            title, body, before, after = counts.get(seq, NOWHERE)
            if is_single:
                often = _CHARACTER
            else:
                often = _TITLE * title + body + _BEFORE * before + _AFTER * after or 1.0
            points[seq] += worth * often / (often + _SATURATION * norms[seq])
            if title or body or (is_single and found is not None):
                own.add(seq)
    return points, own


def presence(term: str, worth: float) -> float:
    """Return a score for having a word, used before the row is read."""
    return worth * (_CHARACTER if is_character(term) else 1.0)
