"""Places where only secrets stand: headers, addresses, command lines, elements and key blocks."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from policies.patterns import read_patterns
from policies.secrets.looks import is_mixed, is_placeholder, looks_chosen, looks_random
from policies.secrets.text import MASK, Span

_PARTS = read_patterns(__file__)
_PLACES_FILE = Path(__file__).with_name("places.txt")
_LONG_CHARS = 20
_VARIABLE = re.compile(r"\$\{?\w+\}?")
_NAME_OF_A_SCHEME = re.compile(r"[A-Z][A-Z0-9]*(?:-[A-Z0-9]+){1,3}")
"""`AWS4-HMAC-SHA256`."""
_WORD_WITH_NUMBER = re.compile(r"[A-Za-z]?[a-z\-]+\d{0,4}[.]?")
"""`Bearer authentication2`."""


def _is_no_word(value: str) -> bool:
    bare = value.rstrip(".,:;)]}!?）")
    if bare.isdigit() or bare.startswith("/") or _NAME_OF_A_SCHEME.fullmatch(bare):
        return False
    if bare.isalpha() and not looks_random(bare):
        return False
    return (is_mixed(bare) or len(bare) >= _LONG_CHARS) and not is_placeholder(value)


_ACCEPTS: Mapping[str, Callable[[str], bool]] = {
    # however plain it looks: nothing else stands there
    "any": lambda value: value != "password" and _VARIABLE.fullmatch(value) is None,
    "plain": lambda value: not is_placeholder(value),
    "mixed": lambda value: is_mixed(value) and not is_placeholder(value),
    "token": lambda value: not (_WORD_WITH_NUMBER.fullmatch(value) or is_placeholder(value)),
    "chosen": lambda value: looks_chosen(value) or looks_random(value),
    # where prose stands as often
    "no_word": _is_no_word,
}
_Place = tuple[tuple[str, ...], re.Pattern[str], Callable[[str], bool]]


def _read_places() -> Iterator[_Place]:
    table = _PLACES_FILE.read_text(encoding="utf-8")
    for entry in re.split(r"\n(?=\w)", table.strip())[1:]:
        head, *lines = entry.splitlines()
        accepts, _, words = head.partition(" ")
        pattern = "".join(line[1:] for line in lines)
        for name, part in _PARTS.items():
            pattern = pattern.replace(f"{{{name.upper()}}}", part)
        alternatives = tuple(words.replace("_", " ").split("|"))
        yield alternatives, re.compile(pattern, re.IGNORECASE), _ACCEPTS[accepts]


_PLACES = tuple(_read_places())
BLOCK_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
BLOCK_REST = re.compile(r"[A-Za-z0-9+/=:,\s\\]*+")
_MIN_KEY_CHARS = 16
"""A shorter block is somebody talking about key blocks."""


def block_spans(text: str) -> Iterator[Span]:
    """Yield the bodies of private keys; without an end, as far as it could be one."""
    at = 0
    while (begin := BLOCK_BEGIN.search(text, at)) is not None:
        end = BLOCK_END.search(text, begin.end())
        if end is None:
            rest = BLOCK_REST.match(text, begin.end())
            assert rest is not None
            at = rest.end()
        else:
            at = end.end()
        if at - begin.end() >= _MIN_KEY_CHARS and not text.startswith(MASK, begin.end()):
            yield begin.end(), at


def place_spans(text: str) -> Iterator[Span]:
    """Yield where values stand in places for secrets."""
    low = text.lower()
    for words, pattern, accepts in _PLACES:
        for word in words:  # not `any`: each line is searched, and a loop is twice as fast
            if word in low:
                for match in pattern.finditer(text):
                    start, end = match.span("value")
                    if not text.startswith(MASK, end) and accepts(match["value"]):
                        yield start, end
                break
