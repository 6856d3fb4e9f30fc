"""The words of questions in what may be read: their rows, and the texts of rows."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from memory.items.seen import Seen
from memory.items.timespan import TimeSpan
from memory.recall.question_words import QuestionWords
from memory.stores.database import Connection, Values, send_for_values
from memory.stores.sqlite.bm25 import Texts
from memory.stores.sqlite.owner_index import (
    OwnRows,
    RowCounts,
    is_many,
    look_up_blocking,
    read_each_blocking,
    read_rows_blocking,
)
from memory.stores.sqlite.statements import id_list, placeholders, span_condition
from memory.stores.sqlite.stems import AskedWord, Stems
from memory.stores.sqlite.word_index import IndexedRow, Rows, WordIndex
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
        seen: Seen,
    ) -> None:
        """Initialise; `seen` need not be found.

        What is needed in any case is sent at once, and waited for when it is looked at.
        """
        self._connection = connection
        self.index = index
        self._readable = readable
        self._counts = counts
        self._stems = stems
        self._rows: dict[str, Rows] = {}
        self._sets: dict[str, frozenset[int]] = {}
        self._read: dict[int, IndexedRow] = {}
        self._counted = counts.counting_blocking(connection, readable)
        self._seen = seen
        self._found_mentioned = _ask_for_mentioned(connection, seen)
        self._is_seen: dict[int, bool] = {}
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
        unknown: dict[str, str] = {}
        for term in dict.fromkeys(terms):
            if term not in self._rows:
                expression = self._expression(self._having(term))
                count = self._counts.known(expression)
                if count is None:
                    unknown[term] = expression
                else:
                    self._rows[term] = Rows(count, None)
        found = self._found(list(unknown)) if unknown else ()
        for (term, expression), rows in zip(unknown.items(), found, strict=True):
            self._counts.note(expression, rows.count)
            self._rows[term] = rows

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
        if missing and (self.own is None or not self.own.others):
            expressions = list(map(self._looked_up, missing))
            found = read_each_blocking(self._connection, expressions)
            self._sets |= {
                term: frozenset(seqs)
                for term, seqs in zip(missing, found, strict=True)
                if seqs is not None
            }

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

    def among(self, term: str, texts: Texts) -> AbstractSet[int]:
        """Return those of the rows of some texts that have a term."""
        if not is_many(self.count(term)):
            known = self._sets.get(term, self._rows[term].seqs)
            if known is not None:
                return texts.lengths.keys() & known
        if is_character(term):
            return {seq for seq in texts.lengths if term in self._read[seq].characters}
        return texts.counts(self.word(term)).keys()

    def read(self, seqs: Iterable[int]) -> list[IndexedRow]:
        """Return some rows with their items, in their order; each is read once."""
        wanted = sorted(seqs)
        missing = [seq for seq in wanted if seq not in self._read]
        if missing:
            rows = self.index.read_blocking(self._connection, missing)
            self._read |= {row.seq: row for row in rows}
        return [self._read[seq] for seq in wanted if seq in self._read]

    @cached_property
    def total(self) -> int:
        """How many rows may be read."""
        return self._counted()

    def seen(self, seqs: AbstractSet[int]) -> list[int]:
        """Return those of some rows whose items need not be found.

        Only of the few that were mentioned and are among these it is read in which state they are:
        the mentioned ones stand in indexes, and their states in rows far apart.
        """
        mentioned = self._mentioned & seqs
        unknown = mentioned - self._is_seen.keys()
        if unknown:
            places = ", ".join(map(str, sorted(unknown)))
            rows = self._connection.execute(
                f"SELECT seq, id, turn_id, kind, revision FROM items WHERE seq IN ({places})"  # noqa: S608
            )
            self._is_seen |= {seq: self._seen.has_state(*state) for seq, *state in rows}
        return [seq for seq in mentioned if self._is_seen.get(seq, False)]

    @cached_property
    def _mentioned(self) -> frozenset[int]:
        """The rows of items that were shown, or made of what was said."""
        return frozenset(self._found_mentioned())

    def _found(self, terms: Sequence[str]) -> Sequence[Rows]:
        if self.own is None or not self.own.others:
            return look_up_blocking(self._connection, list(map(self._looked_up, terms)))
        found = map(self._read_term, terms)
        return [Rows(len(seqs), None if is_many(len(seqs)) else seqs) for seqs in found]

    def _looked_up(self, term: str) -> str:
        """Return the expression for a term in what may be read; that is all there is where no one
        else has rows.
        """
        having = self._having(term)
        return self._expression(having) if self.own is None else having

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


def _ask_for_mentioned(connection: Connection, seen: Seen) -> Values:
    """Ask for the rows of items that were shown or made of what was said."""
    if not seen.turns and not seen.shown:
        return list
    return send_for_values(
        connection,
        "SELECT seq FROM items WHERE id IN (SELECT value FROM json_each(?)) UNION ALL"
        " SELECT seq FROM items WHERE turn_id IN (SELECT value FROM json_each(?))",
        (id_list(seen.shown), id_list(seen.turns)),
    )
