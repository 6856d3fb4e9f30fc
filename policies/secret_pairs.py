"""Secrets whose key is a value itself: the name in one place, the secret in the next.

`define('DB_PASSWORD', '…')`, `setPassword("…")`, `<add key="Password" value="…"/>`, `{"name": "DB_PASSWORD",
"value": "…"}`, a `value:` or a block on the line below. Labels and rules of forms stand in the same places
(`{"name": "password", "value": "required"}`), so only what looks like a secret counts.
"""

import re

from policies.masks import MASK
from policies.secret_keys import Key
from policies.secret_looks import looks_chosen, looks_random

_QUOTE = r"\\{0,7}[\"']"
_BLANKS = r"[ \t]{0,8}"
_OPEN_GAP = r"[ \t]{0,8}(?:\r?\n?[ \t]{0,40})?"
_GAP = r"[ \t]{0,8}(?:\r?\n[ \t]{0,40})?"
_INDENTED = r"[ \t]{0,4}\r?\n[ \t]{1,40}"
_TYPE = r":[ \t]{0,4}[A-Za-z_][A-Za-z0-9_.\[\]|]{0,40}(?:[ \t]\|[ \t][A-Za-z]{1,16})?"
_TEXT = r"[^\s\"'\\<>…]{7,2048}"
_PAIRED = re.compile(
    # a call with the value alone, and one that takes a name and a value
    rf"(?:(?P<call>\([\"'])|(?P<argument>[\"'],{_BLANKS}[\"'])"
    # attributes, and members of an object
    rf"|{_QUOTE}(?:[ \t]{{1,8}}value{_BLANKS}={_BLANKS}|{_GAP},{_GAP}{_QUOTE}value{_QUOTE}{_BLANKS}:{_BLANKS}){_QUOTE}"
    rf"|{_QUOTE}{_BLANKS}>"
    rf"|{_QUOTE}{_BLANKS}:{_BLANKS}\{{{_GAP}{_QUOTE}value{_QUOTE}{_BLANKS}:{_BLANKS}{_QUOTE}"
    # a type between: `api_key: str = "…"`
    rf"|{_TYPE}{_BLANKS}={_BLANKS}[\"']"
    # YAML: another entry, or the text below
    rf"|[\"']?(?:{_INDENTED}|,[ \t]{{1,8}})value:[ \t]{{1,8}}[\"']?"
    rf"|:{_BLANKS}(?:[|>][+\-]?)?{_INDENTED})"
    rf"(?P<value>{_TEXT})",
    re.IGNORECASE,
)
_OPEN_VALUE = r"[^\s\"'\\<>…]*"
_OPEN_TYPE = (
    r":[ \t]{0,4}(?:[A-Za-z_][A-Za-z0-9_.\[\]|]{0,40}(?:[ \t](?:\|(?:[ \t][A-Za-z]{0,16})?)?)?)?"
)
OPEN_PAIRS = (
    rf"\((?:[\"']{_OPEN_VALUE})?",
    rf"[\"'],{_BLANKS}(?:[\"']{_OPEN_VALUE})?",
    rf"{_QUOTE}[ \t]{{1,8}}(?:v[a-z]{{0,4}}{_BLANKS}(?:={_BLANKS}(?:{_QUOTE}{_OPEN_VALUE})?)?)?",
    (
        rf"{_QUOTE}{_OPEN_GAP}(?:,{_OPEN_GAP}(?:{_QUOTE}(?:v[a-z]{{0,4}}(?:{_QUOTE}{_BLANKS}"
        rf"(?::{_BLANKS}(?:{_QUOTE}{_OPEN_VALUE})?)?)?)?)?)?"
    ),
    rf"{_QUOTE}{_BLANKS}(?:>{_OPEN_VALUE})?",
    (
        rf"{_QUOTE}{_BLANKS}(?::{_BLANKS}(?:\{{{_OPEN_GAP}(?:{_QUOTE}(?:v[a-z]{{0,4}}(?:{_QUOTE}{_BLANKS}"
        rf"(?::{_BLANKS}(?:{_QUOTE}{_OPEN_VALUE})?)?)?)?)?)?)?"
    ),
    rf"{_OPEN_TYPE}{_BLANKS}(?:={_BLANKS}(?:[\"']{_OPEN_VALUE})?)?",
    rf"[\"']?,[ \t]{{0,8}}(?:v[a-z]{{0,4}}(?::[ \t]{{0,8}}[\"']?{_OPEN_VALUE})?)?",
    rf"[\"']?[ \t]{{0,4}}(?:\r?\n?[ \t]{{0,40}}(?:v[a-z]{{0,4}}(?::[ \t]{{0,8}}[\"']?{_OPEN_VALUE})?)?)?",
    rf":{_BLANKS}(?:[|>][+\-]?)?[ \t]{{0,4}}(?:\r?(?:\n(?:[ \t]{{1,40}}{_OPEN_VALUE})?)?)?",
)
"""What a text that is still coming may have of each behind a key."""
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_.\-]{0,64}\Z")
_ASKS = re.compile(r"(?:get|find|fetch|read|load|has|lookup|resolve)\w*\Z", re.IGNORECASE)
_TRAILING = ",;.)]}:!?"
_MIN_OPAQUE_CHARS = 12


def paired_secret(text: str, key: Key) -> tuple[int, int] | None:
    """Give where the secret begins and ends that stands in the place beside a key's; None: there is none."""
    match = _PAIRED.match(text, key.end)
    if match is None or text.startswith(MASK, match.end()):
        return None
    before = text[max(0, key.start - 64) : key.start]
    name = _NAME_BEFORE.search(before)
    assert name is not None
    if match["call"] and _ASKS.match(name[0]):
        return None  # what is asked for is a name
    if match["argument"] and not before.endswith(("('", '("'), 0, name.start()):
        return None  # one of a list of words
    value = match["value"].rstrip(_TRAILING)
    if not _is_secret(value, key):
        return None
    return match.start("value"), match.start("value") + len(value)


def _is_secret(value: str, key: Key) -> bool:
    if key.is_phrase:
        return looks_chosen(value)
    return len(value) >= _MIN_OPAQUE_CHARS and looks_random(value)
