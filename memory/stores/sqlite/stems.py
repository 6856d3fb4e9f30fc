"""The stems of words, as the full-text index makes them.

The index's own tokenizer makes them, in a table in memory, so that no second stemmer can differ
from it.
"""

import json
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from typing import Final

TOKENIZER: Final = "porter unicode61 remove_diacritics 2"
"""Of `item_words`."""
_MAX_REMEMBERED: Final = 20_000
_WITHOUT_FORMS: Final = "\u1100"
"""Words that begin with a later character have no other forms for the tokenizer."""
_KEPT: Final = 2
"""A stem keeps so many letters of a word, but not their accents."""


class Stems:
    """Makes stems and remembers them; safe for several threads."""

    def __init__(self) -> None:
        self._remembered: dict[str, str] = {}
        self._lock = threading.Lock()
        self._table: sqlite3.Connection | None = None

    def of_blocking(self, words: Iterable[str]) -> dict[str, str]:
        """Return the stem of each word."""
        stems = {word: word for word in words}
        formed = [word for word in stems if word < _WITHOUT_FORMS]
        with self._lock:
            missing = [word for word in formed if word not in self._remembered]
            if missing:
                made = self._made(missing)
                if len(self._remembered) + len(made) > _MAX_REMEMBERED:
                    self._remembered.clear()
                    made = self._made(formed)
                self._remembered |= made
            return stems | {word: self._remembered[word] for word in formed}

    def forms_blocking(self, terms: Mapping[str, str], words: Iterable[str]) -> dict[str, str]:
        """Return those of the words that are forms of terms, given with their stems, each with its
        stem.
        """
        stems = frozenset(terms.values())
        begin = {stem[:_KEPT] for stem in stems}
        likely = [
            word
            for word in words
            if (start := word[:_KEPT]) in begin or not (start.isascii() or start >= _WITHOUT_FORMS)
        ]
        return {word: stem for word, stem in self.of_blocking(likely).items() if stem in stems}

    def _made(self, words: list[str]) -> dict[str, str]:
        if self._table is None:
            self._table = _open_blocking()
        made = dict.fromkeys(words, "")
        self._table.execute("BEGIN")
        self._table.execute(
            "INSERT INTO words (rowid, word) SELECT key, value FROM json_each(?)",
            (json.dumps(words),),
        )
        for number, stem in self._table.execute("SELECT doc, term FROM stems ORDER BY doc, term"):
            made[words[number]] += stem
        self._table.execute("ROLLBACK")
        return made


def _open_blocking() -> sqlite3.Connection:
    table = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    table.execute(
        "CREATE VIRTUAL TABLE words USING fts5 (word, content = '', columnsize = 0,"
        f" detail = none, tokenize = '{TOKENIZER}')"
    )
    table.execute("CREATE VIRTUAL TABLE stems USING fts5vocab (words, instance)")
    return table
