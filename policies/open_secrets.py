"""How much of a text that is still coming can be masked and told already.

A secret can be cut in two by the border between pieces, and so can the key before it: half of either is
not recognised. So all waits that what follows could still make a part of a secret: the unfinished word,
a telling key until its value is over, a command line that takes a password, a key block until its end.
Beside each pattern here stands one that masks; a text cut where this module allows it gives, piece by
piece, what it gives as a whole.
"""

import re
from collections.abc import Iterator

from policies.masks import MASK
from policies.secret_keys import CHINESE_KEYS, keys_in
from policies.secret_pairs import OPEN_PAIRS
from policies.secret_places import TOOLS
from policies.secret_shadow import Shadow
from policies.secret_talk import MARKS, OPEN_TALK
from policies.secret_values import SEPARATORS

MOST_WAITING_CHARS = 4_096
"""What would wait for longer is told as it comes: no secret of a known form is that long on one line."""
MOST_BLOCK_CHARS = 16_384
"""The longest key blocks are a little shorter."""

_BARE = r"[^\s\"'\\;<>，。；、！？“”「」『』…]*"
_VALUE = (
    r"(?:\\{1,7}\"[^\"\\\n…]*\\*|\"(?:\"\")?(?:[^\"\\\n…]|\\[^\n])*\\?|\\{0,7}'(?:'')?[^'\\\n…]*\\*"
    rf"|[“「『][^”」』\n…]*|\\{{1,7}}|(?:`{{1,3}}[^`\s…]*|\*\*[^*\s…]*)?{_BARE}[ \t]*,?[ \t]*)"
)
_ASSIGNED = re.compile(
    r"[ \t]{0,4}[“「『][^”」』\n…]*"
    rf"|\\{{0,7}}{MARKS}[\"']?\]?{MARKS}[ \t]{{0,4}}(?:(?:{SEPARATORS}|=|:){MARKS}[ \t]{{0,4}}{_VALUE})?",
    re.IGNORECASE,
)
_TOLD = re.compile(OPEN_TALK, re.IGNORECASE)
_PAIRS = tuple(re.compile(one, re.IGNORECASE) for one in OPEN_PAIRS)
_BEGUN = sorted({word[:end] for word in CHINESE_KEYS for end in range(1, len(word))}, reverse=True)
"""What keys begin with, the longest first: Chinese ones have no border that they would wait for."""
_AUTHORIZATION = (
    r"authorization\\{0,7}[\"']?[ \t]{0,4}(?:[:=][ \t]{0,4}\\{0,7}[\"']?"
    r"(?:[A-Za-z][A-Za-z0-9\-]{1,30}[ \t]{1,4})?[^\s\"'\\,;<>…]*)?"
)
_SQL = (
    r"(?:identified(?:[ \t]{1,4}with(?:[ \t]{1,4}[^\s…]{0,64})?)?(?:[ \t]{0,4}[a-z]{0,2})?"
    r"|(?:with|encrypted|login|by)[ \t]{1,4}password)[ \t]{0,4}(?:[\"'][^\"'\n…]{0,256})?"
)
_STRETCHES = (
    # the beginning of a key
    (("api",), r"api[ \t]?"),
    (tuple(sorted({one[0] for one in _BEGUN})), "|".join(_BEGUN)),
    # headers
    (
        ("bearer", "basic", "token", "digest", "apikey"),
        r"(?:bearer|basic|token|digest|apikey)[ \t]{0,4}[A-Za-z0-9._~+/=\-]*",
    ),
    (("authorization",), _AUTHORIZATION),
    (
        ("cookie",),
        r"(?:set-)?cookie\\{0,7}[\"']?[ \t]{0,4}(?:[:=][ \t]{0,4}\\{0,7}[\"']?[^\n\"'\\…]*)?",
    ),
    # command lines
    (("-",), r"(?:--|(?<![A-Za-z0-9_])-)[A-Za-z0-9_\-]{0,60}[ \t]{0,4}[\"']?[^\s\"'\\;|<>…]*"),
    (TOOLS, rf"(?:{'|'.join(TOOLS)})(?![A-Za-z0-9_])[^\n]{{0,3000}}"),
    (("-u",), r"(?<![^ \t])(?:-u|--user(?:name)?)(?![A-Za-z0-9_])[^\n]{0,600}"),
    (("auth=(",), r"auth=\([^)\n]{0,400}"),
    (("identified", "password"), _SQL),
    (("login",), r"login(?:[ \t]{1,8}[^\s…]*){0,3}"),
    # elements and the first line of a block
    (
        ("<",),
        r"<(?:[A-Za-z_:][A-Za-z0-9_:.\-]{0,63}(?:[ \t][^<>…\n]{0,200})?(?:>[^<>\s…]*(?:</?)?)?)?",
    ),
    (("-----",), r"-----BEGIN [A-Z0-9 ]{0,60}-{0,5}"),
)
_COMPILED = tuple((words, re.compile(one, re.IGNORECASE)) for words, one in _STRETCHES)
_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")


def settled_chars(text: str) -> int:
    """Say how many characters can be masked by themselves: whatever follows changes nothing in them."""
    shadow = Shadow.of(text)
    read = shadow.text
    blocks = list(_blocks(read))
    open_block = bool(blocks) and blocks[-1][1] == len(read)
    if len(text) > (MOST_BLOCK_CHARS if open_block else MOST_WAITING_CHARS):
        return len(text)
    at = _before_word(read, len(read))
    for start, end in sorted([*blocks, *_stretches(read), *_under_keys(read)], reverse=True):
        if start < at <= end:  # what is over by now must not be cut, either
            at = _before_word(read, start)
    return shadow.start(at)


def _under_keys(text: str) -> Iterator[tuple[int, int]]:
    """Give where keys begin, and up to where what is said of each could not be cut."""
    for key in keys_in(text):
        assigned = _ASSIGNED.match(text, key.end)
        told = _TOLD.match(text, key.end)
        pairs = (one.match(text, key.end) for one in _PAIRS)
        ends = [key.end, *(one.end() for one in pairs if one is not None)]
        if assigned is not None:
            ends.append(assigned.end())
        if told is not None:  # nothing that follows its end belongs to it
            ends.append(told.end() - (told.end() < len(text)))
        yield key.start, max(ends)


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Give where something begins that a secret could be in, and up to where it could not be cut."""
    lower = text.lower()
    for words, pattern in _COMPILED:
        if any(one in lower for one in words):
            at = 0
            while (found := pattern.search(text, at)) is not None:
                yield found.span()
                at = found.start() + 1  # another may begin inside of it, and reach further


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Give where key blocks begin and end; one that is not over yet goes to the end of the text."""
    at = 0
    while (begin := _BLOCK.search(text, at)) is not None:
        end = _BLOCK_END.search(text, begin.end())
        yield begin.start(), len(text) if end is None else end.end() - 1
        at = len(text) if end is None else end.end()


def _before_word(text: str, at: int) -> int:
    """Go back over the word that something stands in, and the blanks and the comma before it."""
    while at and ("!" <= text[at - 1] <= "~" or text[at - 1] == MASK[0]):
        at -= 1
    while at and text[at - 1] in " \t":
        at -= 1
    return at - 1 if at and text[at - 1] == "," else at
