"""Substring search over FTS5, for any script and any length of query.

A text is indexed by the set of its grams: at every position three characters where the first is
ASCII, two where it is not (a Chinese word often has two). Letter case is folded first. ASCII
characters other than letters and digits are moved to a private-use block, so that the `ascii`
tokenizer sees each gram as one token.

A match is necessary, not sufficient: callers compare the texts it finds. The table needs neither
positions nor columns (`detail=none`, `columnsize=0`, `content=''`).
"""

from codecs import charmap_decode
from itertools import chain
from typing import Final

_BLOCK: Final = 0xE000
_MOVED: Final = {code: _BLOCK + code for code in range(128) if not chr(code).isalnum()}
_MOVED_ASCII: Final = "".join(chr(_MOVED.get(code, code)) for code in range(128))
_OWNER: Final = "\U000f0000"
"""Begins the token of an owner; a text that holds it can only cause a candidate too many."""
_MAX_GRAMS: Final = 16
"""Grams asked for of a long query; common ones cost more than they exclude."""


def grams(text: str, owner: str) -> str:
    """Return the tokens of an owner's text, separated by spaces; the same set for the same text."""
    folded = _fold(text)
    followed = zip(folded, chain(folded[1:], [""]), chain(folded[2:], ["", ""]), strict=False)
    found = {"".join(chars[: _length(chars[0])]) for chars in set(followed)}
    return " ".join([_owner_token(owner), *found])


def gram_query(text: str, owner: str) -> str | None:
    """Return the FTS5 query for an owner's texts that may hold `text`; None if it is too
    unspecific.

    Too unspecific is a single ASCII character, or nothing: most texts hold it.
    """
    folded, chosen = _fold(text), grams_within(text)
    if chosen:
        wanted = " AND ".join(f'"{gram}"' for gram in sorted(chosen))
    elif folded and not (len(folded) == 1 and _is_ascii(folded)):
        wanted = f'"{folded}" *'
    else:
        return None
    return f'"{_owner_token(owner)}" AND {wanted}'


def grams_within(text: str) -> set[str]:
    """Return grams that each text has that holds `text`, some if there are many; none if it is too
    short for a whole one.
    """
    folded = _fold(text)
    places = [at for at, char in enumerate(folded) if at + _length(char) <= len(folded)]
    step = max(1, len(places) // _MAX_GRAMS)
    return {folded[at : at + _length(folded[at])] for at in places[::step][:_MAX_GRAMS]}


def _fold(text: str) -> str:
    folded = text.casefold()
    if folded.isascii():  # much faster
        return charmap_decode(folded.encode(), "strict", _MOVED_ASCII)[0]
    return folded.translate(_MOVED)


def _length(char: str) -> int:
    return 3 if _is_ascii(char) else 2


def _is_ascii(char: str) -> bool:
    return char.isascii() or _BLOCK <= ord(char) <= _BLOCK + 0x7F


def _owner_token(owner: str) -> str:
    return _OWNER + owner.translate(_MOVED)
