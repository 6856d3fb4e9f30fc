"""The keys that tell of a secret, and where in a text they stand.

Words for what people choose (`password`, `口令`) and words for what machines give (`token`, `密钥`), also
as parts of longer names and as JSON in ASCII writes them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from policies.secret_shadow import lowered

_CHINESE_PHRASES = (
    *("密码", "密碼", "口令", "通行码", "通行碼", "提取码", "提取碼"),
    *("密 码", "密  码", "密 碼", "密  碼", "口 令"),  # as wide as the names beside them
)
_CHINESE_TOKENS = (
    *("密钥", "密鑰", "秘钥", "秘鑰", "金鑰", "令牌", "权杖", "權杖", "私钥", "私鑰"),
    *("凭证", "憑證", "凭据", "憑據", "授权码", "授權碼", "激活码", "啟用碼"),
)
CHINESE_KEYS = (*_CHINESE_PHRASES, *_CHINESE_TOKENS)


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
    r"auth[_\-]?key|client[_\-]key[_\-]data|signing[_\-]?key|encryption[_\-]?key|license[_\-]?key|"
    rf"credentials?|{any_of(_CHINESE_TOKENS)}"
)
_LOOSE_KEYS = (
    r"pass(?![a-z0-9])|pw(?![a-z0-9])|psk(?![a-z0-9])"
    r"|key(?<=[a-z0-9][_\-]key)(?![a-z0-9_])|key(?<=[a-z0-9]key)(?![a-z0-9_])"
    r"|pat(?<=_pat)(?![a-z0-9])|auth(?<=[_\"]auth)(?![a-z0-9_])"
)
"""Under these much stands that is no secret: the name before them tells, or the value itself."""
_KEY = re.compile(f"{_PHRASE_KEYS}|{_OPAQUE_KEYS}|{_LOOSE_KEYS}")
"""In small letters, and each word begins with a plain letter: so the search is fast."""
_PHRASE = re.compile(_PHRASE_KEYS)
_LOOSE = re.compile(r"(?:pass|pw|psk|key|pat|auth)\Z")
_LOOSE_PHRASES = ("pass", "pw", "psk")
_LOGINS = (
    *("admin", "become", "bind", "db", "ftp", "imap", "ldap", "login", "mail", "mysql", "pg"),
    *("postgres", "redis", "root", "smtp", "ssh", "sudo", "wifi", "wpa"),
)
"""`SMTP_PASS`, `dbPass`, `root_pw`: as good as the whole word."""
_LOCKS = (
    *("admin", "aes", "app", "application", "bot", "client", "consumer", "deploy", "developer"),
    *("device", "function", "hmac", "ingest", "jwt", "master", "openai", "project", "role"),
    *("root", "sas", "server", "service", "storage", "subscription", "webhook", "write"),
    *("anthropic", "gemini"),
)
"""Keys that open something in whatever spelling: `MASTER_KEY`, `appKey`, `x-functions-key`."""
_OPENS_NOTHING = (
    *("public", "pub", "cache", "primary", "partition", "sort", "foreign", "idempotency", "host"),
    *("object", "row", "range", "hash", "dedup", "group", "lookup", "known", "gpg", "pgp", "ssh"),
    *("index", "map"),
)
"""Among settings in capitals, where `ACME_KEY` else is a secret if its value is: `CACHE_KEY`, `GPG_KEY`."""
_KEY_WORDS = ("pass", "pw", "psk", "_pat", "auth", "token", "secret", "key", "credential")
"""One of them is in every text that holds a key in English; the others are not looked for in plain ASCII."""


@dataclass(frozen=True, slots=True)
class Key:
    """A telling key in a text."""

    start: int
    end: int
    is_phrase: bool
    """Whether people choose what stands under it, and any word may be it."""
    is_loose: bool = False
    """Whether much stands under it that is no secret, so the value itself has to look like one."""


def keys_in(text: str) -> Iterator[Key]:
    """Give the keys in a text, in their order; of those that begin at one place, the longest."""
    low = lowered(text)
    if _may_hold_key(low):
        for match in _KEY.finditer(low):
            key = _key(text, low, match)
            if key is not None:
                yield key


def _may_hold_key(low: str) -> bool:
    for word in _KEY_WORDS:  # not `any`: each line is asked, and a loop is twice as fast
        if word in low:
            return True
    return not low.isascii() or "\\u" in low


def _key(text: str, low: str, match: re.Match[str]) -> Key | None:
    start, end = match.span()
    if not _LOOSE.match(match[0]):
        return Key(start, end, _PHRASE.match(match[0]) is not None)
    is_phrase = match[0] in _LOOSE_PHRASES
    before = start - 1 if low[start - 1 : start] in ("_", "-") else start
    if match[0] == "key":
        opens = low.endswith(_LOCKS, 0, before) or (
            low.startswith("_", before)
            and text[before - 1 : end].isupper()
            and not low.endswith(_OPENS_NOTHING, 0, before)
        )
        return Key(start, end, is_phrase=False, is_loose=True) if opens else None
    if is_phrase and low.endswith(_LOGINS, 0, before):
        return Key(start, end, is_phrase=True)
    if is_phrase and "a" <= low[start - 1 : start] <= "z" and text[start - 1 : end].islower():
        return None  # the end of another word: compass, bypass
    return Key(start, end, is_phrase, is_loose=match[0] != "psk")
