"""The stems of words, as the full-text index makes them.

The index's own tokenizer makes them, in a table in memory, so that no second stemmer can differ
from it.
"""

import json
import sqlite3
import threading
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

TOKENIZER: Final = "porter unicode61 remove_diacritics 2"
"""Of `item_words`."""
_MAX_REMEMBERED: Final = 20_000
_WITHOUT_FORMS: Final = "\u1100"
"""Words that begin with a later character have no other forms for the tokenizer, but for these."""
_ACCENTED: Final = range(0x1E00, 0x2000)
"""Latin and Greek letters with accents, such as those of Vietnamese."""
_KEPT: Final = 2
"""A stem keeps so many letters of a word, and all of its own but the last, without accents."""


@dataclass(frozen=True, slots=True)
class AskedWord:
    """A word of a question."""

    stem: str
    begin: str
    """What all its forms begin with."""

    @classmethod
    def of(cls, stem: str) -> "AskedWord":
        has_forms = stem < _WITHOUT_FORMS
        return cls(stem, stem[: max(_KEPT, len(stem) - 1)] if has_forms else stem)


class Stems:
    """Makes stems and remembers them; safe for several threads."""

    def __init__(self) -> None:
        self._remembered: dict[str, str] = {}
        self._lock = threading.Lock()
        self._table: sqlite3.Connection | None = None

    def of_blocking(self, words: Iterable[str]) -> dict[str, str]:
        """Return the stem of each word."""
        stems = {word: word for word in words}
        formed = [word for word in stems if word < _WITHOUT_FORMS or ord(word[0]) in _ACCENTED]
        with self._lock:
            missing = [word for word in formed if word not in self._remembered]
            if missing:
                made = self._made(missing)
                if len(self._remembered) + len(made) > _MAX_REMEMBERED:
                    self._remembered.clear()
                    made = self._made(formed)
                self._remembered |= made
            return stems | {word: self._remembered[word] for word in formed}

    def asked_blocking(self, terms: Iterable[str]) -> dict[str, "AskedWord"]:
        """Return each term of a question as a word to look for."""
        return {term: AskedWord.of(stem) for term, stem in self.of_blocking(terms).items()}

    def _made(self, words: list[str]) -> dict[str, str]:
        if self._table is None:
            self._table = _open_blocking()
            weakref.finalize(self, self._table.close)
        made = dict.fromkeys(words, "")
        self._table.execute("BEGIN")
        self._table.execute(
            "INSERT INTO words (rowid, word) SELECT key, value FROM json_each(?)",
            (json.dumps(words),),
        )
        row = self._table.execute(
            "SELECT json_group_array(json_array(doc, term))"
            " FROM (SELECT doc, term FROM stems ORDER BY doc, term)"
        ).fetchone()
        for number, stem in json.loads(row[0]):
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
