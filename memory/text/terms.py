"""Splits mixed Chinese and English text into terms, for the index and for questions alike.

Text is normalised (NFKC, case folded) and split where scripts meet. A compound name
(`ERR_CONN_RESET`, `v2.3.1`, `getUserName`) yields its parts and itself. A run of Chinese, Japanese
or Korean characters yields each pair of neighbours, or its only character. Stemming is left to the
full-text index (porter).
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from operator import add
from typing import Final

_CJK: Final = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+(?:[._:/\\-][^\W{_CJK}]+)*")
_CJK_RUN = re.compile(rf"[{_CJK}]+")
_PART = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MAX_WORD_CHARS = 64
"""Longer words, such as digests, are left out."""


def terms(text: str, *, with_compounds: bool = True) -> list[str]:
    """Return the terms of a text in order, with repetitions; letters and digits only.

    Without compounds, a compound name yields its parts only.
    """
    found: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text)):
        if run.isascii() and run.isalnum() and run.islower() and len(run) <= _MAX_WORD_CHARS:
            found.append(run)  # most words, of which nothing below would make anything else
        elif _CJK_RUN.match(run):
            found += _pairs(run)
        else:
            found += _words(run, with_compounds=with_compounds)
    return found


def characters(text: str) -> list[str]:
    """Return each Chinese, Japanese or Korean character of a text once, in order."""
    clean = unicodedata.normalize("NFKC", text)
    return list(dict.fromkeys(char for run in _CJK_RUN.findall(clean) for char in run.casefold()))


def is_character(term: str) -> bool:
    """Return whether a term is a single Chinese, Japanese or Korean character."""
    return len(term) == 1 and _CJK_RUN.match(term) is not None


def beginning(term: str) -> str:
    """Return what other forms of a word begin with as well: three characters, or three fifths of
    it.
    """
    return term[: max(3, len(term) * 3 // 5)]


def _pairs(run: str) -> Iterable[str]:
    folded = run.casefold()
    return map(add, folded, folded[1:]) if len(folded) > 1 else [folded]


def _words(run: str, *, with_compounds: bool) -> Iterator[str]:
    parts = _PART.findall(run)
    whole = "".join(parts).casefold()
    pieces = [piece.casefold() for part in parts for piece in _HUMP.split(part) if piece]
    for piece in pieces:
        if len(piece) <= _MAX_WORD_CHARS:
            yield piece
    if with_compounds and len(pieces) > 1 and len(whole) <= _MAX_WORD_CHARS:
        yield whole
