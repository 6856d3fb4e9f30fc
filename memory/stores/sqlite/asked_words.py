"""The words of questions in what may be read: their rows, and the texts of rows."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from memory.items.seen import Seen
from memory.items.timespan import TimeSpan
from memory.recall.question_words import QuestionWords
from memory.stores.database import Connection
from memory.stores.sqlite.bm25 import Text
from memory.stores.sqlite.owner_index import (
    OwnRows,
    RowCounts,
    Rows,
    count_rows_blocking,
    is_many,
    read_each_blocking,
    read_ranked_blocking,
    read_rows_blocking,
)
from memory.stores.sqlite.statements import id_list, placeholders, span_condition
from memory.stores.sqlite.stems import AskedWord, Stems
from memory.stores.sqlite.word_index import WordIndex
from memory.text.terms import is_character


class AskedWords:
    """The words of one question in what may be read, looked up once."""

    def __init__(
        self,
        connection: Connection,
        index: WordIndex,
        readable: str,
        counts: RowCounts,
        stems: Stems,
    ) -> None:
        self._connection = connection
        self.index = index
        self._readable = readable
        self._counts = counts
        self._stems = stems
        self._rows: dict[str, Rows] = {}
        self._sets: dict[str, frozenset[int]] = {}
        self._items: dict[int, Any] = {}
        self._texts: dict[int, Text] = {}
        self._seen: list[int] | None = None
        self.total = counts.total_blocking(connection, readable)
        self.own: OwnRows | None = None
        self._asked: dict[str, AskedWord] = {}
        """The words of all questions."""

    def ask(self, wordings: Iterable[QuestionWords]) -> None:
        """Take the questions; call it before the others."""
        self._asked = self._stems.asked_blocking(
            term for wording in wordings for term in (*wording.weights, *wording.characters)
        )

    def word(self, term: str) -> AskedWord:
        return self._asked[term]

    def look_up(self, terms: Iterable[str]) -> None:
        has_all = self.own is not None and not self.own.others
        missing = {
            term: self._expression(self._having(term))
            for term in dict.fromkeys(terms)
            if term not in self._rows
        }
        read: Mapping[str, Sequence[int]] = {}
        if self.own is None:
            read = self._read_terms([t for t in missing if not self._counts.knows(missing[t])])
        for term, expression in missing.items():
            self._rows[term] = self._counts.rows_blocking(
                expression,
                partial(self._read_unless, read, term),
                partial(count_rows_blocking, self._connection, self._having(term))
                if has_all
                else None,
            )

    def within(self, span: TimeSpan, owners: Sequence[str]) -> frozenset[int]:
        """Return the rows of a span."""
        condition, bounds = span_condition(span)
        rows = self._connection.execute(
            f"SELECT seq FROM items WHERE owner_id IN ({placeholders(owners)}){condition}",  # noqa: S608
            (*owners, *bounds),
        )
        return frozenset(row[0] for row in rows)

    def count(self, term: str) -> int:
        return self._rows[term].count

    def fetch(self, terms: Iterable[str]) -> None:
        """Read the rows of the terms of which only the count is known, if they are not too many."""
        missing = [
            term
            for term in terms
            if term not in self._sets
            and self._rows[term].seqs is None
            and not is_many(self.count(term))
        ]
        self._sets |= {term: frozenset(seqs) for term, seqs in self._read_terms(missing).items()}

    def having(self, term: str, labels: str = "") -> frozenset[int]:
        """Return the rows that have a term and the labels; only the newest if they are too many."""
        if labels:
            return frozenset(self._read_rows(self._having(term), labels, count=self.count(term)))
        if term not in self._sets:
            known = self._rows[term]
            seqs = known.seqs
            if seqs is None:
                seqs = self._read_term(term, known.count)
            self._sets[term] = frozenset(seqs)
        return self._sets[term]

    def labelled(self, terms: Sequence[str], labels: str) -> frozenset[int]:
        """Return the rows that have one of the terms, and the labels."""
        return frozenset(self._read_rows(self.index.one_of(map(self._having, terms)), labels))

    def among(self, term: str, seqs: Sequence[int]) -> frozenset[int]:
        """Return those of some rows, whose texts were read, that have a term."""
        if not is_many(self.count(term)):
            known = self._sets.get(term, self._rows[term].seqs)
            if known is not None:
                return frozenset(seqs).intersection(known)
        if is_character(term):
            return frozenset(seq for seq in seqs if term in self._texts[seq].characters)
        return frozenset(seq for seq in seqs if self._texts[seq].has(self.word(term)))

    def read(self, seqs: Sequence[int]) -> dict[int, Text]:
        """Return the texts of some rows, in their order; each is read once."""
        missing = [seq for seq in seqs if seq not in self._texts]
        if missing:
            rows = self.index.terms_blocking(self._connection, missing)
            self._texts |= {
                seq: Text(columns, characters, self._stems) for seq, characters, *columns in rows
            }
        return {seq: self._texts[seq] for seq in sorted(seqs) if seq in self._texts}

    def items(self, seqs: Sequence[int]) -> Mapping[int, Any]:
        """Return the items of some rows; each is read once."""
        missing = [seq for seq in seqs if seq not in self._items]
        if missing:
            rows = self._connection.execute(
                "SELECT seq, id, kind, labels FROM items"  # noqa: S608  numbers of our own
                f" WHERE seq IN ({_places(missing)})"
            )
            self._items |= {row["seq"]: row for row in rows}
        return self._items

    def turns(self, seqs: Iterable[int]) -> frozenset[int]:
        """Return those of some rows that are turns."""
        wanted = list(seqs)
        items = self.items(wanted)
        return frozenset(seq for seq in wanted if seq in items and items[seq]["kind"] == "turn")

    def seen(self, seen: Seen) -> list[int]:
        """Return the rows of items that need not be found, the same for all questions."""
        if not seen.turns and not seen.shown:
            return []
        if self._seen is not None:
            return self._seen
        rows = self._connection.execute(
            "SELECT seq, id, revision, 0 AS was_said FROM items"
            " WHERE id IN (SELECT value FROM json_each(?)) UNION ALL"
            " SELECT seq, id, revision, 1 FROM items WHERE turn_id IN"
            " (SELECT value FROM json_each(?)) AND (kind IN ('turn', 'episode') OR revision = 1)",
            (id_list(seen.shown), id_list(seen.turns)),
        )
        self._seen = [
            row["seq"]
            for row in rows
            if row["was_said"] or row["revision"] <= seen.shown[row["id"]]
        ]
        return self._seen

    def _read_terms(self, terms: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """Return the rows that have each of the terms, as `_read_term` does."""
        if self.own is not None or not terms:
            return {term: self._read_term(term) for term in terms}
        expressions = [self._expression(self._having(term)) for term in terms]
        found = read_each_blocking(self._connection, expressions)
        return dict(zip(terms, found, strict=True))

    def _read_unless(self, read: Mapping[str, Sequence[int]], term: str) -> Sequence[int]:
        if term in read:
            return read[term]
        if self.own is None or self.own.others:
            return self._read_term(term)
        return read_ranked_blocking(self._connection, self._having(term))

    def _read_term(self, term: str, count: int = 0) -> Sequence[int]:
        """Return the rows that have a term, see `read_rows_blocking`; use the owner's remembered
        rows.
        """
        if self.own is not None and not is_many(count):
            every = read_rows_blocking(self._connection, self._having(term))
            theirs = self.own.among(every) if self.own.others else every
            if not is_many(len(every)) or len(theirs) == len(every):
                return theirs
        return self._read_rows(self._having(term), count=count)

    def _read_rows(self, *parts: str, count: int = 0) -> Sequence[int]:
        return read_rows_blocking(self._connection, self._expression(*parts), count=count)

    def _expression(self, *parts: str) -> str:
        return self.index.all_of([self._readable, *(part for part in parts if part)])

    def _having(self, term: str) -> str:
        """Return the expression for a term."""
        return self.index.having(term, self.word(term).stem)


def _places(seqs: Iterable[int]) -> str:
    return ", ".join(str(seq) for seq in seqs)
