"""The terms of items in SQLite's FTS5, which folds accents and stems; see `WordIndex`."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from memory.stores.database import Connection
from memory.stores.sqlite.statements import insert_blocking
from memory.stores.sqlite.word_index import IndexedTerms
from memory.text.terms import is_character


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
        if is_character(term):
            return f'characters : "{term}"'
        return f'{{title body before after}} : "{term}"'

    def all_of(self, parts: Iterable[str]) -> str:
        return " AND ".join(f"({part})" for part in parts)

    def one_of(self, parts: Iterable[str]) -> str:
        return " OR ".join(parts)

    def count_blocking(self, reader: Connection, expression: str, most: int = -1) -> int:
        row = reader.execute(
            "SELECT count(*) FROM (SELECT 1 FROM item_words WHERE item_words MATCH ? LIMIT ?)",
            (expression, most),
        ).fetchone()
        return int(row[0])

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

    def rows_of_each_blocking(
        self, reader: Connection, expressions: Sequence[str], limit: int
    ) -> list[list[int]]:
        return [self.rows_blocking(reader, part, limit, newest=False) for part in expressions]

    def terms_blocking(self, reader: Connection, seqs: Sequence[int]) -> Iterable[Sequence[Any]]:
        places = ", ".join(map(str, seqs))
        return reader.execute(
            f"SELECT id, c4, c0, c1, c2, c3 FROM item_words_content WHERE id IN ({places})"  # noqa: S608
        )
