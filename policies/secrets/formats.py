"""Tokens of providers, found by their form alone; `token_formats` lists the known ones."""

import re
from collections.abc import Iterator
from functools import cache

from policies.secrets.looks import is_mixed, looks_made
from policies.secrets.text import MASK, Span, words
from policies.secrets.token_formats import KNOWN_FORMATS

_BORDERS = (
    r"(?<![A-Za-z0-9]{0})",
    r"(?<=\\[nrt]{0})",  # a line break or a tab, written out
    r"(?<=\\u[0-9a-fA-F]{{4}}{0})",
    r"(?<=%[0-9a-fA-F]{{2}}{0})",
    *(r"(?<=[\[;]\dm{0})", r"(?<=[\[;]\d\dm{0})", r"(?<=;\d\d\dm{0})"),  # a terminal's colours
)
"""What may stand before a token: nothing that it could be a part of, or the end of an escape."""


def _border(word: str = "") -> str:
    return f"(?:{'|'.join(border.format(word) for border in _BORDERS)})"


def _read_formats() -> Iterator[tuple[str, str]]:
    """Yield a word that is in each token of a format, and the pattern of the whole token."""
    for listed, rest in KNOWN_FORMATS:
        for entry in listed.split():
            word = entry.removeprefix("~")
            if word != entry:  # no prefix: the pattern has its own border
                pattern = rest.replace("BORDER", _B)
            else:  # the word goes first, because a search for plain text is the fastest
                pattern = f"{re.escape(word)}{_border(re.escape(word))}{rest}"
            yield word, re.sub(r"W(?=[{*)])", r"[A-Za-z0-9_\\-]", pattern)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern when its word is first met: all of them would take a start 90 ms."""
    return re.compile(pattern, re.ASCII)


_B = _border()
_PATTERNS = tuple(_read_formats())
_LONG_RUN = re.compile(r"[!-~]{15,}")
"""Every token stands in such a run, and most lines of prose hold none."""
_SECRET_WORDS = frozenset(words("sk pat secret token tok apikey key api auth live pw"))
_SECRET_WORDS_FOR_HEX = frozenset(("sk", "pat", "live"))
_HASHES = re.compile(r"(?:sha|md)\d{1,3}[_\-]\Z")
_PLAIN_HEAD = re.compile(r"(?:[a-z]{2,12}[_\-])+|(?:[A-Z]{2,12}[_\-])+")
_LONG_TAIL = re.compile(r"[_\-][A-Za-z0-9]{20}")
_UNLISTED = re.compile(
    rf"{_B}(?<![_\-./+\\])(?<!sha256=)(?<!sha384=)(?<!sha512=)"
    r"(?P<head>(?:[A-Za-z][A-Za-z0-9]{0,15}[_\-]){1,4})"
    r"(?P<tail>[A-Za-z0-9]{20,512})(?![A-Za-z0-9_\-/+]|\.[A-Za-z0-9])"
)
"""Joined words and a long tail, as most providers make tokens today: `acme_sk_…`, `acme-pat-…`."""
_LONGER_THAN_IDS = 32


def token_spans(text: str) -> Iterator[Span]:
    """Yield where tokens stand that their form alone shows."""
    runs = "\n".join(_LONG_RUN.findall(text))
    if not runs:
        return
    for word, pattern in _PATTERNS:
        if word in runs:
            for match in _compiled(pattern).finditer(text):
                if not text.startswith(MASK, match.end()):
                    yield match.span()
    if _LONG_TAIL.search(runs) is not None:
        for match in _UNLISTED.finditer(text):
            if _is_unlisted_token(match):
                yield match.span()


def _is_unlisted_token(match: re.Match[str]) -> bool:
    """Return whether a token's own words, or its length, show that it is a token.

    Ids are made the same way (`req_…`, `msg_…`) but shorter; names of caches have no capitals.
    """
    head, tail = match["head"].lower(), match["tail"]
    if match.string.startswith(MASK, match.end()) or _HASHES.search(head):
        return False
    parts = re.split(r"[_\-]", head)
    is_long = len(tail) >= _LONGER_THAN_IDS
    if looks_made(tail):
        is_plain = _PLAIN_HEAD.fullmatch(match["head"]) is not None
        return (is_long and is_plain) or not _SECRET_WORDS.isdisjoint(parts)
    return is_long and is_mixed(tail) and not _SECRET_WORDS_FOR_HEX.isdisjoint(parts)
