"""What one would take instead: one column in FTS5, every word of the question, nothing else."""

import re
import sqlite3
import unicodedata
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

_WORD = re.compile(r"\w+")
_RUN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]+|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]+"
)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _trigrams(text: str) -> list[str]:
    runs = _WORD.findall(text.casefold())
    return [run[i : i + 3] for run in runs for i in range(len(run) - 2)]


def _unigrams_and_bigrams(text: str) -> list[str]:
    grams: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _CJK.match(run):
            grams += [*run, *(a + b for a, b in pairwise(run))]
        else:
            grams.append(run)
    return grams


def _as_it_is(text: str) -> str:
    return text


PLAIN: Mapping[str, tuple[str, Callable[[str], str], Callable[[str], Sequence[str]]]] = {
    "unicode61": ("unicode61", _as_it_is, _words),
    "trigram": ("trigram", _as_it_is, _trigrams),
    "unigram+bigram": (
        "porter unicode61",
        lambda text: " ".join(_unigrams_and_bigrams(text)),
        _unigrams_and_bigrams,
    ),
}


class PlainIndex:
    """One such table in memory."""

    def __init__(self, name: str, texts: Mapping[str, str]) -> None:
        tokenizer, self._written, self._asked = PLAIN[name]
        self._table = sqlite3.connect(":memory:")
        weakref.finalize(self, self._table.close)
        self._table.execute(
            f"CREATE VIRTUAL TABLE words USING fts5 (id UNINDEXED, text, tokenize='{tokenizer}')"
        )
        self._table.executemany(
            "INSERT INTO words VALUES (?, ?)",
            [(one, self._written(text)) for one, text in texts.items()],
        )

    def find(self, question: str, limit: int) -> list[str]:
        asked = " OR ".join(f'"{term}"' for term in dict.fromkeys(self._asked(question)))
        if not asked:
            return []
        return [
            row[0]
            for row in self._table.execute(
                "SELECT id FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (asked, limit)
            )
        ]
