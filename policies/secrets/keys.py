"""The names under which secrets stand, and where in a text they are.

Names for what people choose (`password`, `口令`) and for what machines make (`token`, `密钥`), also as parts
of longer names and as ASCII JSON writes them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from policies.patterns import read_patterns
from policies.secrets.text import Plain, lowered, words

_PATTERNS = read_patterns(__file__)
_CHINESE_PHRASES = tuple(_PATTERNS["chinese_phrases"].split("|"))
_CHINESE_TOKENS = words(_PATTERNS["chinese_tokens"])
CHINESE_KEYS = (*_CHINESE_PHRASES, *_CHINESE_TOKENS)


def any_of(words: tuple[str, ...]) -> str:
    """Match words, also as ASCII JSON escapes them, once or more often."""
    escaped = ("".join(rf"\\[\\]{{0,6}}u{ord(char):04x}" for char in word) for word in words)
    return "|".join((*words, *escaped))


_PHRASE_KEYS = rf"pass(?:word|wd|phrase|code)|pwd|{any_of(_CHINESE_PHRASES)}"
_OPAQUE_KEYS = f"{_PATTERNS['opaque_keys']}|{any_of(_CHINESE_TOKENS)}"
_LOOSE_KEYS = _PATTERNS["loose_keys"]
_KEY = re.compile(rf"(?P<phrase>{_PHRASE_KEYS})|(?P<opaque>{_OPAQUE_KEYS})|{_LOOSE_KEYS}")
_LOGINS = words(_PATTERNS["logins"])
_LOCKS = words(_PATTERNS["locks"])
_OPENS_NOTHING = words(_PATTERNS["opens_nothing"])
_KEY_WORDS = ("pass", "pw", "psk", "_pat", "auth", "token", "secret", "key", "credential")
"""One of them is in every ASCII text with a key; a search for plain words is the fastest."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key in a text."""

    start: int
    end: int
    is_phrase: bool
    """True if people choose what stands under it, so that any word may be it."""
    is_loose: bool = False
    """True if the value itself has to look like a secret."""


_MAX_NAME_CHARS: Final = 100
"""The end of a longer name decides."""
_HEADERS: Final = ("authorization", "cookie", "bearer", "pwd_hash", "pwdhash")


def names_secret(name: str) -> bool:
    """Return whether the field or option of this name holds a secret, such as `apiKey`, `--token` or `密码`."""
    return _names_secret(name[-_MAX_NAME_CHARS:])


@lru_cache(maxsize=4096)
def _names_secret(name: str) -> bool:
    plain = Plain.of(name).text.strip()
    quoted = f'"{plain}"'
    if plain.lower() == "pwd":  # the present folder
        return False
    is_key = any(key.end == len(quoted) - 1 for key in keys_in(quoted))
    return is_key or plain.lower().endswith(_HEADERS)


def keys_in(text: str) -> Iterator[Key]:
    """Yield the keys in a text in order."""
    low = lowered(text)
    if not _may_hold_key(low):
        return
    for match in _KEY.finditer(low):
        if match.lastgroup is not None:
            yield Key(*match.span(), is_phrase=match.lastgroup == "phrase")
        elif (key := _loose_key(text, low, match)) is not None:
            yield key


def _may_hold_key(low: str) -> bool:
    for word in _KEY_WORDS:  # not `any`: each line is searched, and a loop is twice as fast
        if word in low:
            return True
    return not low.isascii() or "\\u" in low


def _loose_key(text: str, low: str, match: re.Match[str]) -> Key | None:
    (start, end), word = match.span(), match[0]
    before = start - 1 if low[start - 1 : start] in ("_", "-") else start
    if word == "key":
        opens = low.endswith(_LOCKS, 0, before) or (
            low.startswith("_", before)
            and text[before - 1 : end].isupper()
            and not low.endswith(_OPENS_NOTHING, 0, before)
        )
        return Key(start, end, is_phrase=False, is_loose=True) if opens else None
    if word in ("pat", "auth"):
        return Key(start, end, is_phrase=False, is_loose=True)
    if low.endswith(_LOGINS, 0, before):
        return Key(start, end, is_phrase=True)
    if "a" <= low[start - 1 : start] <= "z" and text[start - 1 : end].islower():
        return None  # the end of another word: compass, bypass
    return Key(start, end, is_phrase=True, is_loose=word != "psk")
