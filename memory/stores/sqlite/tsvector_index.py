"""The terms of items in a `tsvector` of PostgreSQL with a GIN index; see `WordIndex`.

No dictionary or parser of the server takes part: its lexemes are the stems of the project's terms
as FTS5 makes them, single characters, and tokens of the scope behind a colon, which no term holds.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from memory.stores.database import Connection
from memory.stores.sqlite.stems import Stems
from memory.stores.sqlite.word_index import IndexedRow, IndexedTerms, Rows
from memory.text.terms import is_character

_SCOPE: Final = ":"
_MAX_BYTES: Final = 1_000_000
"""Of a row's lexemes; a `tsvector` with more than 2**20 is stored wrong, without an error."""
_PLAN: Final = (
    # A sequence of all rows would have each `tsvector` fetched and compared.
    "SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)"
)


class TsvectorIndex:
    """The table `item_words`: lexemes, and the terms that rows are ranked by, a line a column."""

    few = 3000  # each of them is a few bytes, and a statement more is a way to the server and back

    def __init__(self) -> None:
        self._stems = Stems()

    def put_blocking(self, writer: Connection, seq: int, terms: IndexedTerms) -> None:
        columns = (terms.title, terms.body, terms.before, terms.after, terms.characters)
        writer.execute(
            "INSERT INTO item_words (seq, words, terms) VALUES (?, array_to_tsvector(?), ?)"
            " ON CONFLICT (seq) DO UPDATE SET words = excluded.words, terms = excluded.terms",
            (seq, list(self._lexemes(terms)), "\n".join(map(" ".join, columns))),
        )

    def remove_blocking(self, writer: Connection, seq: int) -> None:
        writer.execute("DELETE FROM item_words WHERE seq = ?", (seq,))

    def prepare_blocking(self, reader: Connection) -> None:
        reader.execute(_PLAN)

    def scoped(self, tokens: Iterable[str]) -> str:
        return self.one_of(f"'{_SCOPE}{token}'" for token in tokens)

    def having(self, term: str, stem: str) -> str:
        lexeme = term if is_character(term) else stem
        # a term that FTS5 makes no word of is in no row, and neither is the mark alone
        return f"'{lexeme or _SCOPE}'"

    def all_of(self, parts: Iterable[str]) -> str:
        return f"({' & '.join(parts)})"

    def one_of(self, parts: Iterable[str]) -> str:
        return f"({' | '.join(parts)})"

    def without(self, part: str, other: str) -> str:
        return f"({part} & !{other})"

    def counting_blocking(self, reader: Connection, expression: str) -> Callable[[], int]:
        """See `WordIndex`. The server counts while other statements are sent to it."""
        counted = reader.execute(
            "SELECT count(*) FROM item_words WHERE words @@ ?::tsquery", (expression,)
        )
        return lambda: int(counted.fetchone()[0])

    def rows_blocking(
        self, reader: Connection, expression: str, limit: int, *, newest: bool
    ) -> list[int]:
        """See `WordIndex`. The rows come as one text, which is quicker to read than many."""
        order = " ORDER BY seq DESC" if newest else ""
        row = reader.execute(
            "SELECT string_agg(seq::text, ',') FROM (SELECT seq FROM item_words"  # noqa: S608
            f" WHERE words @@ ?::tsquery{order} LIMIT ?) AS found",
            (expression, limit),
        ).fetchone()
        found: list[int] = json.loads(f"[{row[0] or ''}]")
        return found

    def look_up_blocking(
        self, reader: Connection, expressions: Sequence[str], most: int, counted: int
    ) -> list[Rows]:
        """See `WordIndex`. One statement, because each is a way to the server and back."""
        rows = reader.execute(
            "SELECT counted, CASE WHEN counted <= ? THEN array_to_string(seqs, ',') END"
            " FROM unnest(?::text[]) WITH ORDINALITY AS asked (query, place), LATERAL"
            " (SELECT count(*) AS counted, array_agg(seq) AS seqs FROM (SELECT seq FROM item_words"
            " WHERE words @@ asked.query::tsquery LIMIT ?) AS found) AS matching"
            " ORDER BY place",
            (most, list(expressions), counted),
        )
        return [
            Rows(count, None if count > most else json.loads(f"[{seqs or ''}]"))
            for count, seqs in rows
        ]

    def read_blocking(self, reader: Connection, seqs: Sequence[int]) -> Iterator[IndexedRow]:
        rows = reader.execute(
            "SELECT seq, id, kind, labels, terms FROM items JOIN item_words USING (seq)"
            " WHERE seq = ANY (?::bigint[])",
            (list(seqs),),
        )
        for seq, item_id, kind, labels, lines in rows:
            *columns, characters = lines.split("\n")
            yield IndexedRow(seq, item_id, kind, labels, characters, columns)

    def _lexemes(self, terms: IndexedTerms) -> Iterator[str]:
        """Yield the lexemes of a row; what is most is cut off at the end."""
        words = chain(terms.title, terms.body, terms.before, terms.after)
        stems = self._stems.of_blocking(word for word in words if not is_character(word))
        scope = (f"{_SCOPE}{token}" for token in terms.scope)
        room = _MAX_BYTES
        for lexeme in dict.fromkeys(chain(scope, stems.values(), terms.characters)):
            room -= len(lexeme.encode())
            if room < 0:
                return
            if lexeme:
                yield lexeme
