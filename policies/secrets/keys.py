"""The names under which secrets stand, and where in a text they are.

Names for what people choose (`password`, `口令`) and for what machines make (`token`, `密钥`), also
as parts of longer names and as ASCII JSON writes them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from policies.secrets.text import Plain, lowered, words

# The second line: as wide as the names beside them.
_CHINESE_PHRASES = tuple(
    "密码|密碼|口令|通行码|通行碼|提取码|提取碼|密 码|密  码|密 碼|密  碼|口 令".split("|")
)
_CHINESE_TOKENS = words(
    "密钥 密鑰 秘钥 秘鑰 金鑰 令牌 权杖 權杖 私钥 私鑰 凭证 憑證 凭据 憑據 授权码 授權碼 "
    "激活码 啟用碼"
)
_SPOKEN = words("暗号 暗號")
CHINESE_KEYS = (*_CHINESE_PHRASES, *_CHINESE_TOKENS, *_SPOKEN)


def any_of(words: tuple[str, ...]) -> str:
    """Match words, also as ASCII JSON escapes them, once or more often."""
    escaped = ("".join(rf"\\[\\]{{0,6}}u{ord(char):04x}" for char in word) for word in words)
    return "|".join((*words, *escaped))


_PHRASE_KEYS = rf"pass(?:word|wd|phrase|code)|pwd|{any_of(_CHINESE_PHRASES)}"
_OPAQUE_KEYS = (
    r"token|secret[_\-]?key[_\-]?base|secret[_\-]?key|secret|api[_\- ]?key"
    r"|access[_\-]?key(?:[_\-]?id)?|private[_\-]?key|account[_\-]?key"
    r"|shared[_\-]?access[_\-]?key"
    r"|auth[_\-]?key|client[_\-]key[_\-]data|signing[_\-]?key|encryption[_\-]?key"
    r"|license[_\-]?key|credentials?"
    rf"|{any_of(_CHINESE_TOKENS)}"
)
# Much stands under these that is no secret: the name before them decides, or the value.
_LOOSE_KEYS = (
    "pass(?![a-z0-9])|pw(?![a-z0-9])|psk(?![a-z0-9])"
    r"|key(?<=[a-z0-9][_\-]key)(?![a-z0-9_])|key(?<=[a-z0-9]key)(?![a-z0-9_])"
    r"|pat(?<=_pat)(?![a-z0-9])|auth(?<=[_\"]auth)(?![a-z0-9_])"
)
# Words of people and not of programs: `pin` names a contact there, and 暗号 a cipher.
_SPOKEN_KEYS = (
    r"(?<![a-z0-9_.\-])pin(?:[ \-]?(?:code|number)|[ ]?[码碼])?(?![a-z0-9_])"
    rf"|{'|'.join(_SPOKEN)}"
)
_KEY = re.compile(
    rf"(?P<phrase>{_PHRASE_KEYS})|(?P<opaque>{_OPAQUE_KEYS})|(?P<spoken>{_SPOKEN_KEYS})"
    rf"|{_LOOSE_KEYS}"
)
# `SMTP_PASS`, `dbPass`, `root_pw` mean as much as the whole word.
_LOGINS = words(
    "admin become bind db ftp imap ldap login mail mysql pg postgres redis root smtp ssh "
    "sudo wifi wpa"
)
# Keys that open something in any spelling: `MASTER_KEY`, `appKey`, `x-functions-key`.
_LOCKS = words(
    "admin aes app application bot client consumer deploy developer device function hmac "
    "ingest jwt master openai "
    "project role root sas server service storage subscription webhook write anthropic "
    "gemini"
)
# Other settings in capitals, `ACME_KEY`, are keys whose value decides; `CACHE_KEY`, `GPG_KEY` are
# none.
_OPENS_NOTHING = words(
    "public pub cache primary partition sort foreign idempotency host object row range "
    "hash dedup group lookup known gpg pgp ssh index map"
)
_KEY_WORDS = ("pass", "pw", "psk", "_pat", "auth", "token", "secret", "key", "credential", "pin")
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
    is_spoken: bool = False
    """True if it names a secret in sentences alone, and no field or setting."""
    is_pin: bool = False
    """True if only digits are a value of it."""


_MAX_NAME_CHARS: Final = 100
"""The end of a longer name decides."""
_HEADERS: Final = ("authorization", "cookie", "bearer", "pwd_hash", "pwdhash")


def names_secret(name: str) -> bool:
    """Return whether the field or option of this name holds a secret, such as `apiKey`, `--token`
    or `密码`.
    """
    return _names_secret(name[-_MAX_NAME_CHARS:])


@lru_cache(maxsize=4096)
def _names_secret(name: str) -> bool:
    plain = Plain.of(name).text.strip()
    quoted = f'"{plain}"'
    if plain.lower() == "pwd":  # the present folder
        return False
    is_key = any(key.end == len(quoted) - 1 and not key.is_spoken for key in keys_in(quoted))
    return is_key or plain.lower().endswith(_HEADERS)


def keys_in(text: str) -> Iterator[Key]:
    """Yield the keys in a text in order."""
    low = lowered(text)
    if not _may_hold_key(low):
        return
    for match in _KEY.finditer(low):
        if match.lastgroup == "spoken":
            is_pin = match[0].startswith("pin")
            yield Key(*match.span(), is_phrase=True, is_spoken=True, is_pin=is_pin)
        elif match.lastgroup is not None:
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
