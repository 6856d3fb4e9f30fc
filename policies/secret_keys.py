"""The keys that tell of a secret, and where in a text they stand.

Words for what people choose (`password`, `口令`) and words for what machines give (`token`, `密钥`), also
as parts of longer names and as JSON in ASCII writes them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from policies.secret_shadow import lowered

_CHINESE_PHRASES = ("密码", "密碼", "口令")
_CHINESE_TOKENS = (
    *("密钥", "密鑰", "秘钥", "秘鑰", "令牌", "私钥", "私鑰"),
    *("凭证", "凭据", "授权码"),
)


def escaped(words: tuple[str, ...]) -> tuple[str, ...]:
    """Give words as JSON in ASCII writes them: a backslash, `u`, and four digits a character."""
    return tuple("".join(f"\\u{ord(one):04x}" for one in word) for word in words)


def any_of(words: tuple[str, ...]) -> str:
    """Match words, also escaped, and escaped again."""
    return "|".join((*words, *(one.replace("\\", r"\\[\\]{0,6}") for one in escaped(words))))


_PHRASE_KEYS = rf"pass(?:word|wd|phrase|code)|pwd|{any_of(_CHINESE_PHRASES)}"
_OPAQUE_KEYS = (
    r"token|secret[_\-]?key[_\-]?base|secret[_\-]?key|secret|api[_\- ]?key|"
    r"access[_\-]?key(?:[_\-]?id)?|private[_\-]?key|account[_\-]?key|shared[_\-]?access[_\-]?key|"
    r"auth[_\-]?key|signing[_\-]?key|encryption[_\-]?key|license[_\-]?key|"
    rf"credentials?|{any_of(_CHINESE_TOKENS)}"
)
_KEY = re.compile(f"{_PHRASE_KEYS}|{_OPAQUE_KEYS}")
"""In small letters, and each word begins with a plain letter: so the search is fast."""
_PHRASE = re.compile(_PHRASE_KEYS)
_KEY_WORDS = (
    *("pass", "pwd", "token", "secret", "key", "credential"),
    *(*_CHINESE_PHRASES, *_CHINESE_TOKENS),
    *(one.rpartition("\\")[2] for one in escaped((*_CHINESE_PHRASES, *_CHINESE_TOKENS))),
)
"""One of them is in every text that holds such a key."""


@dataclass(frozen=True, slots=True)
class Key:
    """A telling key in a text."""

    start: int
    end: int
    is_phrase: bool
    """Whether people choose what stands under it, and any word may be it."""


def keys_in(text: str) -> Iterator[Key]:
    """Give the keys in a text, in their order; of those that begin at one place, the longest."""
    low = lowered(text)
    if any(word in low for word in _KEY_WORDS):
        for match in _KEY.finditer(low):
            yield Key(*match.span(), _PHRASE.match(match[0]) is not None)
