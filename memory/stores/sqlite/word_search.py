"""From a question's words to ranked rows, at a bounded cost.

Of the words the rarest are asked for first, until together they stand in `MAX_RANKED` rows: a word
that stands in every other row costs most and tells least. A word that weighs more is asked for more
than once, which is how the index's ranking (BM25) counts it more.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log
from typing import Final

from memory.items import KINDS, ItemKind
from memory.recall.wording import Wording
from memory.scope import Scope
from memory.stores.sqlite.item_words import kind_token, label_tokens, owner_token
from memory.terms import is_character

MAX_RANKED: Final = 10_000
"""Rows that one search ranks at most, but for a single word that alone has more."""
_MAX_COUNTED: Final = 4000
"""A word is counted up to so many rows; one with more counts as having them all."""
_MANY_ROWS: Final = 6000
"""Where the words stand in so many rows, single characters would add more rows than they tell apart."""
_MAX_REPEATS: Final = 3
_COVERED_TERMS: Final = 24
_EXPECTED_TERMS: Final = 36
"""Of a longer question, a dialogue's history say, no more than of one with so many words is expected."""
_LEAST_COVERAGE: Final = 0.22
_LEAST_COVERAGE_OF_WORDS: Final = 0.34
"""A question of words alone: more than one word of three. Chinese pairs also span two words, and such a
pair stands nowhere, so that less of them is to be expected."""
_LEAST_TERMS: Final = 1.5
_LEAST_SHARE: Final = 0.04
_NEVER: Final = 2.0
_WEIGHTS: Final = "2.0, 1.0, 0.7, 0.3, 0.2, 0.0"
"""Of title, body, the item before, the one after, single characters, scope: the neighbours' by what was
measured on dialogues, the title's because it is said to be what the item is about."""


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row that has some of the words."""

    item_id: str
    score: float
    coverage: float
    is_about: bool


@dataclass(frozen=True, slots=True)
class WordSearch:
    """One search, ready to be run on a connection."""

    wording: Wording
    scope: Scope
    kinds: Sequence[ItemKind] = KINDS
    limit: int = 50

    def run_blocking(self, connection: sqlite3.Connection) -> list[FoundRow]:
        """Give the rows that rank best, best first."""
        if not self.kinds:
            return []
        phrases = {_phrase(term): weight for term, weight in self.wording.weights.items()}
        counts = {phrase: _count(connection, phrase) for phrase in phrases}
        if sum(counts.values()) < _MANY_ROWS:
            characters = dict.fromkeys(map(_character, self.wording.characters), 1.0)
            counts |= {phrase: _count(connection, phrase) for phrase in characters}
            phrases |= characters
        asked = list(_affordable(counts))
        if not asked:
            return []
        rows = connection.execute(
            "SELECT w.rowid AS seq, i.id AS id, w.score AS score FROM"  # noqa: S608  numbers of our own
            f" (SELECT rowid, bm25(item_words, {_WEIGHTS}) AS score FROM item_words"
            " WHERE item_words MATCH ? ORDER BY score LIMIT ?) AS w"
            " JOIN items AS i ON i.seq = w.rowid ORDER BY w.score",
            (self._expression({phrase: phrases[phrase] for phrase in asked}), self.limit),
        ).fetchall()
        covered = self._covered(connection, [row["seq"] for row in rows], counts)
        least = self._least_coverage(max(covered.values(), default=0.0))
        return [
            FoundRow(row["id"], -row["score"], share, share >= least)
            for row in rows
            for share in [min(1.0, covered.get(row["seq"], 0.0))]
        ]

    def _least_coverage(self, best: float) -> float:
        """Tell how much of the question an item must have to be about the same.

        One item at least must have a good part of it, less of a long question; once there is one, the
        others need little: in a dialogue the answer often shares a single word with what is asked.
        """
        asked = min(len(self.wording.weights), _EXPECTED_TERMS)
        good = _LEAST_COVERAGE if self.wording.characters else _LEAST_COVERAGE_OF_WORDS
        return _LEAST_SHARE if best >= min(good, _LEAST_TERMS / max(1, asked)) else _NEVER

    def _expression(self, asked: Mapping[str, float]) -> str:
        words = " OR ".join(
            one for phrase, weight in asked.items() for one in [phrase] * _repeats(weight)
        )
        owners = " OR ".join(owner_token(one) for one in self.scope.readable_owners)
        parts = [f"scope : ({owners})", f"({words})"]
        parts += [f"scope : {token}" for token in label_tokens(self.scope)]
        if len(self.kinds) < len(KINDS):
            kinds = " OR ".join(kind_token(one) for one in self.kinds)
            parts.append(f"scope : ({kinds})")
        return " AND ".join(parts)

    def _covered(
        self, connection: sqlite3.Connection, seqs: Sequence[int], counts: Mapping[str, int]
    ) -> dict[int, float]:
        """Tell for each row how much of the question it has, by the weight of its words."""
        total_rows = connection.execute("SELECT max(seq) FROM items").fetchone()[0] or 1
        worth = {
            phrase: weight * log(1 + total_rows / (counts[phrase] + 0.5))
            for phrase, weight in islice(self._asked_words(), _COVERED_TERMS)
        }
        telling = {
            phrase: value for phrase, value in worth.items() if counts[phrase] < _MAX_COUNTED
        }
        worth = telling or worth  # what stands nearly everywhere tells nothing beside what does not
        whole = sum(worth.values()) or 1.0
        found: dict[int, float] = {}
        for phrase, value in worth.items():
            if not counts[phrase]:
                continue
            for seq in _having(connection, phrase, seqs, rare=counts[phrase] < _MAX_COUNTED):
                found[seq] = found.get(seq, 0.0) + value / whole
        return found

    def _asked_words(self) -> Iterator[tuple[str, float]]:
        """Give what a row is expected to have: the words, or the characters where there are none."""
        if self.wording.weights:
            yield from ((_phrase(term), weight) for term, weight in self.wording.weights.items())
        else:
            yield from ((_character(one), 1.0) for one in self.wording.characters)


def _phrase(term: str) -> str:
    """Ask for a term where words stand; terms are letters and digits, so nothing needs escaping."""
    return _character(term) if is_character(term) else f'{{title body before after}} : "{term}"'


def _character(one: str) -> str:
    return f'characters : "{one}"'


def _repeats(weight: float) -> int:
    return max(1, min(_MAX_REPEATS, round(weight)))


def _count(connection: sqlite3.Connection, phrase: str) -> int:
    row = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM item_words WHERE item_words MATCH ? LIMIT ?)",
        (phrase, _MAX_COUNTED),
    ).fetchone()
    return int(row[0])


def _having(
    connection: sqlite3.Connection, phrase: str, seqs: Sequence[int], *, rare: bool
) -> list[int]:
    """Give those of the rows that have a phrase.

    Of a rare one the index's whole list is walked; into a common one's it is cheaper to jump for each
    row. The `+` keeps SQLite from jumping, at some ten microseconds a row, into a list of a few.
    """
    rowid = "+rowid" if rare else "rowid"
    places = ", ".join(str(seq) for seq in seqs)
    rows = connection.execute(
        f"SELECT rowid FROM item_words WHERE item_words MATCH ? AND {rowid} IN ({places})",  # noqa: S608
        (phrase,),
    )
    return [row[0] for row in rows]


def _affordable(counts: Mapping[str, int]) -> Iterator[str]:
    """Choose what to ask for: everything where that is few rows, else the rarest; at least one."""
    spent = 0
    for phrase in sorted((one for one in counts if counts[one]), key=lambda one: counts[one]):
        spent += counts[phrase]
        if spent > MAX_RANKED and spent > counts[phrase]:
            return
        yield phrase
