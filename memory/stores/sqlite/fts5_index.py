"""The terms of items in SQLite's FTS5, which folds accents and stems; see `WordIndex`."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Final

from memory.stores.database import Connection
from memory.stores.sqlite.statements import insert_blocking
from memory.stores.sqlite.word_index import IndexedRow, IndexedTerms, Rows
from memory.text.terms import is_character

_AS_A_DIGEST: Final = 16
"""Characters; the tokens of a scope have 21, of which a stem keeps nearly all."""


class Fts5Index:
    """The table `item_words`, with a column for each field of `IndexedTerms`.

    What is read comes as one JSON value: Python's driver takes the interpreter's lock again for
    each row and each statement, and waits for it whenever the loop is at work.
    """

    few = 200

    def put_blocking(self, writer: Connection, seq: int, terms: IndexedTerms) -> None:
        self.remove_blocking(writer, seq)
        columns = {field.name: " ".join(getattr(terms, field.name)) for field in fields(terms)}
        insert_blocking(writer, "item_words", {"rowid": seq, **columns})

    def remove_blocking(self, writer: Connection, seq: int) -> None:
        writer.execute("DELETE FROM item_words WHERE rowid = ?", (seq,))

    def prepare_blocking(self, reader: Connection) -> None:
        """Do nothing: a `MATCH` is always answered by the index."""

    def scoped(self, tokens: Iterable[str]) -> str:
        return f"scope : ({' OR '.join(tokens)})"

    def having(self, term: str, stem: str) -> str:  # noqa: ARG002
        """See `WordIndex`. Naming the columns takes a quarter longer, and only a word as long as a
        digest can be one of `scope`.
        """
        if is_character(term):
            return f'characters : "{term}"'
        columns = "{title body before after} : " if len(term) >= _AS_A_DIGEST else ""
        return f'{columns}"{term}"'

    def all_of(self, parts: Iterable[str]) -> str:
        return " AND ".join(f"({part})" for part in parts)

    def one_of(self, parts: Iterable[str]) -> str:
        return " OR ".join(parts)

    def without(self, part: str, other: str) -> str:
        return f"({part}) NOT ({other})"

    def counting_blocking(self, reader: Connection, expression: str) -> Callable[[], int]:
        return partial(self._count_blocking, reader, expression)

    def rows_blocking(
        self, reader: Connection, expression: str, limit: int, *, newest: bool
    ) -> list[int]:
        """See `WordIndex`."""
        order = " ORDER BY rowid DESC" if newest else ""
        row = reader.execute(
            "SELECT json_group_array(rowid) FROM (SELECT rowid FROM item_words"  # noqa: S608
            f" WHERE item_words MATCH ?{order} LIMIT ?)",
            (expression, limit),
        ).fetchone()
        found: list[int] = json.loads(row[0])
        return found

    def look_up_blocking(
        self, reader: Connection, expressions: Sequence[str], most: int, counted: int
    ) -> list[Rows]:
        read = self._of_each(reader, "json_group_array(rowid)", expressions, most + 1)
        many = [asked for asked, seqs in zip(expressions, read, strict=True) if len(seqs) > most]
        counts = dict(zip(many, self._of_each(reader, "count(*)", many, counted), strict=True))
        return [
            Rows(counts[asked], None) if asked in counts else Rows(len(seqs), seqs)
            for asked, seqs in zip(expressions, read, strict=True)
        ]

    def read_blocking(self, reader: Connection, seqs: Sequence[int]) -> Iterator[IndexedRow]:
        places = ", ".join(map(str, seqs))
        row = reader.execute(
            "SELECT json_group_array(json_array(seq, items.id, kind, labels, c4, c0, c1, c2, c3))"  # noqa: S608
            " FROM items JOIN item_words_content AS words ON words.id = seq"
            f" WHERE seq IN ({places})"
        ).fetchone()
        for seq, item_id, kind, labels, characters, *columns in json.loads(row[0]):
            yield IndexedRow(seq, item_id, kind, labels, characters, columns)

    def _of_each(
        self, reader: Connection, what: str, expressions: Sequence[str], limit: int
    ) -> list[Any]:
        """Return what an aggregate makes of so many rows that fit, for each of the expressions."""
        if not expressions:
            return []
        row = reader.execute(
            f"SELECT json_group_object(key, (SELECT {what} FROM (SELECT rowid FROM item_words"  # noqa: S608
            " WHERE item_words MATCH asked.value LIMIT ?))) FROM json_each(?) AS asked",
            (limit, json.dumps(expressions)),
        ).fetchone()
        found = json.loads(row[0])
        return [found[str(number)] for number in range(len(expressions))]

    def _count_blocking(self, reader: Connection, expression: str) -> int:
        row = reader.execute(
            "SELECT count(*) FROM item_words WHERE item_words MATCH ?", (expression,)
        ).fetchone()
        return int(row[0])
