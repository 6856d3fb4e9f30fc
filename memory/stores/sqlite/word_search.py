"""From a question's words to ranked rows, at a bounded cost, out of what the owner may read and nothing else.

Of the words the rarest are asked for, until together they stand in `MAX_RANKED` rows: a word that stands
in every other row costs most and tells least. Of the next ones some count for the rows that are ranked,
and bring none. The likeliest rows are read and scored by how often and where the words stand in them.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from heapq import nlargest, nsmallest
from typing import Final

from memory.items import KINDS, ItemKind
from memory.recall.question_words import QuestionWords
from memory.scope import Scope
from memory.stores.sqlite.item_words import case_token, kind_token, label_tokens, owner_token
from memory.stores.sqlite.word_counts import (
    COMMON,
    MAX_COUNTED,
    Rows,
    WordCounts,
    read_rows_blocking,
)
from memory.stores.sqlite.word_gate import Gate
from memory.stores.sqlite.word_owning import Owning, OwnRows
from memory.stores.sqlite.word_scoring import (
    Term,
    Text,
    average_length,
    presence,
    rarity,
    score,
)
from memory.terms import is_character

MAX_RANKED: Final = 10_000
"""Rows that one search ranks at most, but for a single word that alone has more."""
_MAX_BESIDE: Final = 3
_MAX_LOOKED_INTO: Final = 12_000
"""Rows times words beside them; each is a look into an index."""
_MANY_ROWS: Final = 6000
"""Where the words stand in so many rows, single characters would add more rows than they tell apart."""
_MAX_REPEATS: Final = 3
_READ: Final = 2
"""Times as many rows are read and scored as are wanted."""
_LOOKED_AT: Final = 4
"""Times as many rows as are read are looked at for their labels, before the index is asked which carry them."""


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

    wording: QuestionWords
    scope: Scope
    kinds: Sequence[ItemKind] = KINDS
    limit: int = 50
    counts: WordCounts = field(default_factory=WordCounts)
    owning: Owning = field(default_factory=Owning)

    def run_blocking(self, connection: sqlite3.Connection) -> list[FoundRow]:
        """Give the rows that rank best, best first."""
        if not self.kinds:
            return []
        words = _Words(connection, self._readable(), self.counts)
        words.own = self.owning.rows_blocking(
            connection, self.scope.readable_owners, self.kinds, words.total
        )
        weights = {term: _bounded(weight) for term, weight in self.wording.weights.items()}
        words.look_up(weights)
        if sum(map(words.count, weights)) < _MANY_ROWS:
            characters = {one: 1 for one in self.wording.characters if one not in weights}
            words.look_up(characters)
            weights |= characters
        asked = list(_affordable({one: words.count(one) for one in weights}))
        if not asked:
            return []
        scored = self._scored(words, asked, weights)
        return self._judged(words, scored)

    def _readable(self) -> str:
        """Ask for what the readable owners have of the kinds."""
        if tuple(self.kinds) == ("case",):
            return f"scope : ({' OR '.join(map(case_token, self.scope.readable_owners))})"
        owners = " OR ".join(owner_token(one) for one in self.scope.readable_owners)
        if len(self.kinds) == len(KINDS):
            return f"scope : ({owners})"
        kinds = " OR ".join(kind_token(one) for one in self.kinds)
        return f"scope : ({owners}) AND scope : ({kinds})"

    def _scored(
        self, words: "_Words", asked: Sequence[str], weights: Mapping[str, int]
    ) -> list[tuple[int, float]]:
        """Give the best rows with their scores, best first."""
        worth = {one: weights[one] * rarity(words.total, words.count(one)) for one in weights}
        is_cut = (
            max(map(words.count, asked)) >= MAX_COUNTED
        )  # the labels decide what the newest are
        labels = self._labels() if is_cut else ""
        having = {one: words.having(one, labels) for one in asked}
        having |= words.beside(_beside(words, weights, asked), asked, labels)
        likely: dict[int, float] = {}
        for term, seqs in having.items():
            points = presence(term, worth[term])
            for seq in seqs:
                likely[seq] = likely.get(seq, 0.0) + points
        carry_labels = is_cut or not self.scope.wanted
        best = (
            _first(likely, _READ * self.limit)
            if carry_labels
            else self._first_labelled(words, likely, asked)
        )
        texts = words.read(best, having.keys())
        length = average_length(texts)
        terms = [(Term(one, worth[one]), seqs) for one, seqs in having.items()]
        scored = [
            (seq, score(text, [term for term, seqs in terms if seq in seqs], length))
            for seq, text in texts.items()
        ]
        return sorted(scored, key=lambda one: (-one[1], one[0]))[: self.limit]

    def _first_labelled(
        self, words: "_Words", likely: Mapping[int, float], asked: Sequence[str]
    ) -> list[int]:
        """Give the rows with the most points that carry the labels, so many as are read.

        Mostly the first ones do, and looking at these is quicker than asking the index for all that do.
        """
        most = _READ * self.limit
        some = _first(likely, _LOOKED_AT * most)
        carrying: list[int] = []
        for start in range(0, len(some), most):
            part = some[start : start + most]
            items = words.items(part)
            carrying += [one for one in part if one in items and self._carries(items[one])]
            if len(carrying) >= most:
                return carrying[:most]
        if len(some) == len(likely):
            return carrying
        kept = words.labelled(asked, self._labels())
        return _first({seq: points for seq, points in likely.items() if seq in kept}, most)

    def _carries(self, item: sqlite3.Row) -> bool:
        """Whether an item carries the labels that are wanted; only a case may do without one."""
        labels = json.loads(item["labels"])
        return all(
            labels[name] in values if name in labels else None in values and item["kind"] == "case"
            for name, values in self.scope.wanted.items()
        )

    def _labels(self) -> str:
        return " AND ".join(f"scope : ({' OR '.join(one)})" for one in label_tokens(self.scope))

    def _judged(self, words: "_Words", scored: Sequence[tuple[int, float]]) -> list[FoundRow]:
        """Tell of each row how much of the question it has, and whether that is enough."""
        gate = Gate.of(self.wording, words.count, words.total)
        seqs = [seq for seq, _ in scored]
        covered = gate.coverage({one: words.among(one, seqs) for one in gate.worth}, seqs)
        items = words.items(seqs)
        best = max(covered.values(), default=0.0)
        return [
            FoundRow(
                items[seq]["id"],
                points,
                covered[seq],
                gate.lets_in(covered[seq], best, in_dialogue=items[seq]["thread"] is not None),
            )
            for seq, points in scored
            if seq in items
        ]


class _Words:
    """The words of one question in what may be read, looked up once."""

    def __init__(self, connection: sqlite3.Connection, readable: str, counts: WordCounts) -> None:
        self._connection = connection
        self._readable = readable
        self._counts = counts
        self._rows: dict[str, Rows] = {}
        self._sets: dict[str, frozenset[int]] = {}
        self._items: dict[int, sqlite3.Row] = {}
        self.total = counts.total_blocking(connection, readable)
        self.own: OwnRows | None = None

    def look_up(self, terms: Iterable[str]) -> None:
        for one in terms:
            if one not in self._rows:
                self._rows[one] = self._counts.rows_blocking(
                    self._expression(_phrase(one)), partial(self._read_term, one)
                )

    def count(self, term: str) -> int:
        return self._rows[term].count

    def having(self, term: str, labels: str = "") -> frozenset[int]:
        """Give the rows that have a term, or the newest of them where these are too many.

        Of those with the labels where some are named.
        """
        if labels:
            return frozenset(self._read_rows(_phrase(term), labels, count=self.count(term)))
        if term not in self._sets:
            known = self._rows[term]
            seqs = known.seqs
            if seqs is None:
                seqs = self._read_term(term, known.count)
            self._sets[term] = frozenset(seqs)
        return self._sets[term]

    def labelled(self, terms: Sequence[str], labels: str) -> frozenset[int]:
        """Give the rows that have one of the terms, and the labels."""
        return frozenset(self._read_rows(_any_of(terms), labels))

    def beside(
        self, terms: Sequence[str], asked: Sequence[str], labels: str
    ) -> dict[str, frozenset[int]]:
        """Give for each term the rows that have it, of those that have one of the asked ones, too."""
        parts = [_any_of(asked), *([labels] if labels else [])]
        return {one: frozenset(self._read_rows(*parts, _phrase(one))) for one in terms}

    def among(self, term: str, seqs: Sequence[int]) -> frozenset[int]:
        """Give those of some rows that have a term."""
        count = self.count(term)
        if count < COMMON or (term in self._sets and count < MAX_COUNTED):
            return self.having(term).intersection(seqs)
        rows = self._connection.execute(
            "SELECT rowid FROM item_words WHERE item_words MATCH ?"  # noqa: S608  numbers of our own
            f" AND rowid IN ({_places(seqs)})",
            (_phrase(term),),
        )
        return frozenset(row[0] for row in rows)

    def read(self, seqs: Sequence[int], asked: AbstractSet[str]) -> dict[int, Text]:
        rows = self._connection.execute(
            "SELECT rowid, title, body, before, after FROM item_words"  # noqa: S608  numbers of our own
            f" WHERE rowid IN ({_places(seqs)})"
        )
        return {row[0]: Text.of(tuple(row)[1:], asked) for row in rows}

    def items(self, seqs: Sequence[int]) -> Mapping[int, sqlite3.Row]:
        """Give of some rows what the items say that they are of; read once."""
        missing = [one for one in seqs if one not in self._items]
        if missing:
            rows = self._connection.execute(
                "SELECT seq, id, kind, labels, thread FROM items"  # noqa: S608  numbers of our own
                f" WHERE seq IN ({_places(missing)})"
            )
            self._items |= {row["seq"]: row for row in rows}
        return self._items

    def _read_term(self, term: str, count: int = 0) -> Sequence[int]:
        """Give the rows that have a term; where these are more than are counted, see `read_rows_blocking`."""
        if self.own is not None and count < MAX_COUNTED:
            every = read_rows_blocking(self._connection, _phrase(term))
            theirs = self.own.among(every)
            if len(every) < MAX_COUNTED or len(theirs) == len(every):
                return theirs
        return self._read_rows(_phrase(term), count=count)

    def _read_rows(self, *parts: str, count: int = 0) -> Sequence[int]:
        return read_rows_blocking(self._connection, self._expression(*parts), count=count)

    def _expression(self, *parts: str) -> str:
        return " AND ".join([self._readable, *(f"({one})" for one in parts)])


def _phrase(term: str) -> str:
    """Ask for a term where words stand; terms are letters and digits, so nothing needs escaping."""
    return (
        f'characters : "{term}"'
        if is_character(term)
        else f'{{title body before after}} : "{term}"'
    )


def _any_of(terms: Iterable[str]) -> str:
    return " OR ".join(map(_phrase, terms))


def _places(seqs: Iterable[int]) -> str:
    return ", ".join(str(one) for one in seqs)


def _first(points: Mapping[int, float], most: int) -> list[int]:
    """Give the rows with the most points, those of equal ones that were written first."""
    if len(points) <= most:
        return sorted(points, key=lambda one: (-points[one], one))
    least = nlargest(most, points.values())[-1]
    more = sorted(
        (one for one, value in points.items() if value > least),
        key=lambda one: (-points[one], one),
    )
    equal = (one for one, value in points.items() if value == least)
    return [*more, *nsmallest(most - len(more), equal)]


def _bounded(weight: float) -> int:
    return max(1, min(_MAX_REPEATS, round(weight)))


def _affordable(counts: Mapping[str, int]) -> Iterator[str]:
    """Choose what to ask for: everything where that is few rows, else the rarest; at least one."""
    spent = 0
    for term in sorted((one for one in counts if counts[one]), key=lambda one: counts[one]):
        spent += counts[term]
        if spent > MAX_RANKED and spent > counts[term]:
            return
        yield term


def _beside(words: _Words, weights: Mapping[str, int], asked: Sequence[str]) -> list[str]:
    """Choose what counts for the rows that are asked for, but brings none: the rarest of the rest."""
    rows = sum(map(words.count, asked))
    most = min(_MAX_BESIDE, _MAX_LOOKED_INTO // rows)
    rest = [one for one in weights if one not in asked and 0 < words.count(one) < MAX_COUNTED]
    return sorted(rest, key=words.count)[:most]
