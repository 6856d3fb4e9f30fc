"""The terms of items in SQLite's FTS5, which folds accents and stems; see `WordIndex`."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import Final

from memory.stores.database import Connection
from memory.stores.sqlite.statements import insert_blocking
from memory.stores.sqlite.word_index import IndexedRow, IndexedTerms, Rows
from memory.text.terms import is_character

_AS_A_DIGEST: Final = 16
"""Characters; the tokens of a scope have 21, of which a stem keeps nearly all."""


class Fts5Index:
    """The table `item_words`, with a column for each field of `IndexedTerms`."""

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
        """See `WordIndex`. The rows come as one JSON value, which is twice as quick as one row
        after another.
        """
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
        return [self._rows_of(reader, expression, most, counted) for expression in expressions]

    def read_blocking(self, reader: Connection, seqs: Sequence[int]) -> Iterator[IndexedRow]:
        places = ", ".join(map(str, seqs))
        rows = reader.execute(
            "SELECT seq, items.id, kind, labels, c4, c0, c1, c2, c3 FROM items"  # noqa: S608
            f" JOIN item_words_content AS words ON words.id = seq WHERE seq IN ({places})"
        )
        for seq, item_id, kind, labels, characters, *columns in rows:
            yield IndexedRow(seq, item_id, kind, labels, characters, columns)

    def _rows_of(self, reader: Connection, expression: str, most: int, counted: int) -> Rows:
        found = self.rows_blocking(reader, expression, most + 1, newest=False)
        if len(found) <= most:
            return Rows(len(found), found)
        return Rows(self._count_blocking(reader, expression, counted), None)

    def _count_blocking(self, reader: Connection, expression: str, most: int = -1) -> int:
        row = reader.execute(
            "SELECT count(*) FROM (SELECT 1 FROM item_words WHERE item_words MATCH ? LIMIT ?)",
            (expression, most),
        ).fetchone()
        return int(row[0])
