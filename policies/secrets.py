"""Finds secrets in a text and masks them, for logs, memory, errors and events.

Four sorts, one after the other: values that the caller knows, private key blocks, values under a telling
key (`password=`, `Authorization:`, `密码：`, also inside addresses), and tokens in the formats of known
providers. A mask keeps up to four characters, so that two secrets can be told apart: `sk-a…[masked]`.

Cheap words are looked for before any expression runs, and no expression can run back over what it has
read, so the time grows with the text's length alone. Masking twice gives the same as masking once. A
secret that is cut in two by a chunk border is not seen: mask whole lines or whole messages.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

MASK = "…[masked]"
MAX_KEPT_CHARS = 4
KEPT_SHARE = 4
"""At most one character of this many is kept, so that short secrets do not show half of themselves."""
MIN_KNOWN_CHARS = 6
"""A shorter known value would mask ordinary words."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A text without its secrets, and how many there were."""

    text: str
    count: int


def _mask(secret: str) -> str:
    return f"{secret[: min(MAX_KEPT_CHARS, len(secret) // KEPT_SHARE)]}{MASK}"


# --- tokens in providers' formats ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Format:
    """A token's format; the cheap word is in every text that holds one."""

    word: str
    pattern: re.Pattern[str]


def _format(word: str, rest: str, *, before: str = r"(?<![A-Za-z0-9])") -> _Format:
    return _Format(word, re.compile(f"{before}{re.escape(word)}{rest}"))


def _formats(words: str, rest: str) -> list[_Format]:
    return [_format(word, rest) for word in words.split()]


_FORMATS: Sequence[_Format] = (
    # Anthropic, OpenAI, DeepSeek, DashScope, Moonshot, OpenRouter
    _format("sk-", r"(?=[A-Za-z_\-]{0,60}[0-9])[A-Za-z0-9_\-]{16,}"),
    *_formats(
        "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ whsec_", r"[A-Za-z0-9+/=]{16,}"
    ),
    *_formats("ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{20,}"),
    _format("github_pat_", r"[A-Za-z0-9_]{22,}"),
    *_formats("glpat- gldt- glrt- glptt- glsoat- glcbt- glimt- glft- glagent-", r"[\w\-.]{16,}"),
    *_formats("AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    *_formats("xoxb- xoxa- xoxp- xoxo- xoxr- xoxs- xoxe- xoxe. xapp-", r"[A-Za-z0-9.\-]{10,}"),
    _format("hooks.slack.com/services/", r"[A-Za-z0-9/]{20,}"),
    _format("AIza", r"[A-Za-z0-9_\-]{30,}"),
    _format("ya29.", r"[A-Za-z0-9_\-]{20,}"),
    _format("GOCSPX-", r"[A-Za-z0-9_\-]{20,}"),
    _format(
        "eyJ",
        r"[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)?",
        before=r"(?<![A-Za-z0-9_\-])",
    ),
    *_formats("npm_ hf_ gsk_ r8_ ntn_ lin_api_ fly_ tvly-", r"[A-Za-z0-9]{24,}"),
    *_formats("pypi-", r"[A-Za-z0-9_\-]{40,}"),
    *_formats("xai- pplx- nvapi- fw_ csk- jina_", r"[A-Za-z0-9_\-]{24,}"),
    *_formats("dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{32,}"),
    *_formats("shpat_ shpca_ shppa_ shpss_", r"[a-fA-F0-9]{24,}"),
    _format("dapi", r"[a-f0-9]{32}"),
    *_formats("hvs. hvb. hvr.", r"[A-Za-z0-9_\-]{20,}"),
    _format("SG.", r"[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}"),
    _format("ATATT3", r"[A-Za-z0-9_\-=]{20,}"),
    _format("AGE-SECRET-KEY-1", r"[A-Z0-9]{40,}"),
    _format("key-", r"[a-f0-9]{32}(?![a-f0-9])"),
    # Telegram's bots and Discord's, Twilio: no telling word, so the nearest that there is
    _Format(":AA", re.compile(r"(?<![A-Za-z0-9])\d{8,10}:AA[A-Za-z0-9_\-]{30,}")),
    _Format(
        ".",
        re.compile(
            r"(?<![A-Za-z0-9_\-.])[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,40}"
        ),
    ),
    _Format("SK", re.compile(r"(?<![A-Za-z0-9])SK[a-f0-9]{32}(?![a-f0-9])")),
)


# --- values under a telling key -----------------------------------------------------------------

_PHRASE_KEYS = r"pass(?:word|wd|phrase|code)|pwd|密码|口令|密碼"
_OPAQUE_KEYS = (
    r"token|secret|api[_\- ]?key|apikey|access[_\-]?key(?:[_\-]?id)?|secret[_\-]?key|private[_\-]?key|"
    r"account[_\-]?key|shared[_\-]?access[_\-]?key|auth[_\-]?key|signing[_\-]?key|encryption[_\-]?key|"
    r"credentials?|密钥|密鑰|令牌|私钥|凭证|凭据|授权码"
)
_SEPARATOR = r"\\?[\"']?[ \t]{0,4}(?:=>|:=|[=:：]|是|为|為)[ \t]{0,4}"
_QUOTED = r"\\?\"(?P<double>[^\"\\\n…]{4,})|\\?'(?P<single>[^'\\\n…]{4,})"
MAX_BARE_CHARS = 2048
_BARE_CHAR = r"[^\s\"'\\&;<>，。；、！…]"
_BARE = rf"(?P<bare>{_BARE_CHAR}{{4,{MAX_BARE_CHARS}}})"
"""Bounded, because a value that turns out ordinary is read again in search of a key inside it."""
_BARE_REST = re.compile(rf"{_BARE_CHAR}*")
_KEYED = re.compile(
    rf"(?:(?P<password>{_PHRASE_KEYS})|(?P<token>{_OPAQUE_KEYS})){_SEPARATOR}(?:{_QUOTED}|{_BARE})",
    re.IGNORECASE,
)
_KEY_WORDS = (
    *("pass", "pwd", "token", "secret", "key", "credential"),
    *("密码", "密碼", "口令", "密钥", "密鑰", "令牌", "私钥", "凭证", "凭据", "授权码"),
)
_ORDINARY = (
    "true false none null nil undefined empty unset set missing required optional invalid expired valid "
    "changed reset updated rejected accepted incorrect wrong denied failed masked redacted hidden omitted "
    "string str text bytes int bool boolean number any object type optional[str] str|none yes no on off "
    "default example changeme placeholder your-password your_password"
)
_ORDINARY_VALUES = frozenset(_ORDINARY.split())
_CODE = re.compile(
    r"[\$\{<%\[(*]|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+[,;)]*\Z|[A-Za-z_][\w.]*[\[(]|(?:x{4,}|\*{3,}|\.{3,})\Z"
)
_NAME_OF_A_KEY = re.compile(
    r"[A-Za-z_]*(?:pass|pwd|secret|token|key|cred)[A-Za-z_]*", re.IGNORECASE
)
_IDENTIFIER = re.compile(r"_*[A-Za-z]{1,16}(?:[_\-][A-Za-z]{1,16})+")
_TRAILING = ",;.)]}>:!?"
_LONG_TOKEN_CHARS = 20
_SHORT_TOKEN_CHARS = 8


def _is_long_random(value: str) -> bool:
    return len(value) >= _LONG_TOKEN_CHARS and not _IDENTIFIER.fullmatch(value)


def _is_ordinary(value: str, key: str, separator: str, *, quoted: bool) -> bool:
    """Say whether a value under a telling key is only talk or code."""
    if value.casefold() in _ORDINARY_VALUES or _NAME_OF_A_KEY.fullmatch(value):
        return True
    if not quoted and _CODE.match(value):
        return True
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    if key == "token":
        dense = " " not in value and (mixed or _is_long_random(value))
        return len(value) < _SHORT_TOKEN_CHARS or value.isdigit() or not dense
    chinese = value.isascii() and not separator.isascii()
    assigned = quoted or "=" in separator or chinese
    return value.isalpha() and not assigned


def _read_keyed(match: re.Match[str]) -> tuple[int, int] | None:
    """Give where the secret under a key begins and ends; `None`: it is masked already, or no secret."""
    found = match.lastgroup
    assert found is not None
    text, value, start = match.string, match[found], match.start(found)
    if text.startswith(MASK, match.end(found)):
        return None
    if found == "bare":
        value = value.rstrip(_TRAILING)
    key = "token" if match["token"] else "password"
    if _is_ordinary(value, key, text[match.start() : start], quoted=found != "bare"):
        return None
    rest = _BARE_REST.match(text, match.end()) if len(value) == MAX_BARE_CHARS else None
    return start, start + len(value) if rest is None else rest.end()


def _mask_keyed(text: str) -> Masked:
    out: list[str] = []
    copied = at = count = 0
    while (match := _KEYED.search(text, at)) is not None:
        span = _read_keyed(match)
        if span is None:
            at = match.end("password") if match["password"] else match.end("token")
            continue
        out += [text[copied : span[0]], _mask(text[span[0] : span[1]])]
        copied = at = span[1]
        count += 1
    return Masked("".join([*out, text[copied:]]), count)


# --- headers, addresses, key blocks -------------------------------------------------------------

_SCHEME = re.compile(
    r"\b(?P<head>(?:bearer|basic|token|digest|apikey)[ \t]{1,4})"
    r"(?P<value>(?=[A-Za-z._~+/\-]{0,200}[0-9=])[A-Za-z0-9._~+/=\-]{12,})",
    re.IGNORECASE,
)
_COOKIE = re.compile(
    r"\b(?P<head>(?:set-)?cookie\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\?[\"']?)"
    r"(?P<value>[\w\-.]{1,64}=[^\n\"'\\…]{4,})",
    re.IGNORECASE,
)
_USER_PASSWORD = re.compile(r"(?P<head>://[^\s/:@\"'…]{0,128}:)(?P<value>[^\s/\"'<>…]{1,256})(?=@)")
_USER_TOKEN = re.compile(r"(?P<head>://)(?P<value>[^\s/:@\"'…]{16,256})(?=@)")
_QUERY = re.compile(
    r"(?P<head>[?&](?:sig|signature|x-amz-signature|x-amz-credential|code|auth)=)"
    r"(?P<value>[A-Za-z0-9%._~+/\-]{16,})",
    re.IGNORECASE,
)
_KEY_BLOCK = re.compile(
    r"(?P<head>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)"
    r"(?:[^\-]*+(?:-(?!----)[^\-]*+)*+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|[A-Za-z0-9+/=:,\s\\]*)"
)


def _replace_value(match: re.Match[str]) -> str:
    value = match["value"]
    if match.string.startswith(MASK, match.end("value")) or _NAME_OF_A_KEY.fullmatch(value):
        return match[0]
    return f"{match['head']}{_mask(value)}{match[0][len(match['head']) + len(value) :]}"


MIN_KEY_CHARS = 16
"""A shorter block is somebody talking about key blocks."""


def _replace_block(match: re.Match[str]) -> str:
    body = match.end() - match.end("head")
    if match.string.startswith(MASK, match.end("head")) or body < MIN_KEY_CHARS:
        return match[0]
    return f"{match['head']}{MASK}"


def _replace_whole(match: re.Match[str]) -> str:
    return match[0] if match.string.startswith(MASK, match.end()) else _mask(match[0])


@dataclass(frozen=True, slots=True)
class _Rule:
    words: tuple[str, ...]
    """One of them, in lower case, is in every text that the pattern can match."""
    pattern: re.Pattern[str]
    replace: Callable[[re.Match[str]], str]


_RULES: Sequence[_Rule] = (
    _Rule(("private key",), _KEY_BLOCK, _replace_block),
    _Rule(("://",), _USER_PASSWORD, _replace_value),
    _Rule(("://",), _USER_TOKEN, _replace_value),
    _Rule(("cookie",), _COOKIE, _replace_value),
    _Rule(("bearer", "basic", "token", "digest", "apikey"), _SCHEME, _replace_value),
    _Rule(("sig", "x-amz-", "code=", "auth="), _QUERY, _replace_value),
)


def _spell(known: str) -> Iterable[str]:
    """Give the forms in which a known value turns up."""
    yield known
    yield quote(known, safe="")
    yield json.dumps(known)[1:-1]
    yield json.dumps(known, ensure_ascii=False)[1:-1]
    yield base64.b64encode(known.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def _mask_known(text: str, known: Sequence[str]) -> Masked:
    long_enough = [
        k for k in known if len(k) >= MIN_KNOWN_CHARS and k not in MASK and MASK not in k
    ]
    forms = {form: value for value in long_enough for form in _spell(value)}
    count = 0
    for form in sorted(forms, key=len, reverse=True):
        count += text.count(form)
        text = text.replace(form, _mask(form))
    return Masked(text, count)


def _substitute(
    text: str, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str]
) -> Masked:
    count = 0

    def count_and_replace(match: re.Match[str]) -> str:
        nonlocal count
        replaced = replace(match)
        count += replaced != match[0]
        return replaced

    return Masked(pattern.sub(count_and_replace, text), count)


def mask_secrets_counted(text: str, *, known: Sequence[str] = ()) -> Masked:
    """Mask every secret in a text and say how many were masked.

    `known` are values to mask wherever they stand, also encoded; those shorter than six characters are
    left alone. Masking the result again changes nothing and counts nothing.
    """
    masked = _mask_known(text, known)
    text, count = masked.text, masked.count
    lower = text.lower()
    for rule in _RULES:
        if any(word in lower for word in rule.words):
            masked = _substitute(text, rule.pattern, rule.replace)
            text, count = masked.text, count + masked.count
    if any(word in lower for word in _KEY_WORDS):
        masked = _mask_keyed(text)
        text, count = masked.text, count + masked.count
    for fmt in _FORMATS:
        if fmt.word in text:
            masked = _substitute(text, fmt.pattern, _replace_whole)
            text, count = masked.text, count + masked.count
    return Masked(text, count)


def mask_secrets(text: str, *, known: Sequence[str] = ()) -> str:
    """Mask every secret in a text; see `mask_secrets_counted`."""
    return mask_secrets_counted(text, known=known).text
