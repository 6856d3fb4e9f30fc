"""Secrets that are known by their place: in headers, addresses, command lines, elements and key blocks."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from policies.masks import MASK, mask_value, replaced_spans
from policies.secret_looks import is_mixed, is_placeholder
from policies.secret_shadow import Page

_SCHEME = re.compile(
    r"(?<![A-Za-z0-9_])(?P<head>(?:bearer|basic|token|digest|apikey)[ \t]{1,4})"
    r"(?P<value>(?=[A-Za-z._~+/\-]{0,200}[0-9=])[A-Za-z0-9._~+/=\-]{12,})",
    re.IGNORECASE,
)
_AUTHORIZATION = re.compile(
    r"(?<![A-Za-z0-9_])(?P<head>authorization\\{0,7}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,7}[\"']?"
    r"(?:(?:bearer|basic|token|digest|apikey|key|negotiate)[ \t]{1,4})?)"
    r"(?P<value>[^\s\"'\\,;<>，。；、！？“”「」『』（）…]{6,4096})",
    re.IGNORECASE,
)
_COOKIE = re.compile(
    r"(?<![A-Za-z0-9_])(?P<head>(?:set-)?cookie\\{0,7}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,7}[\"']?)"
    r"(?P<value>[A-Za-z0-9_\-.]{1,64}=[^\n\"'\\…]{4,})",
    re.IGNORECASE,
)
_USER_PASSWORD = re.compile(r"(?P<head>://[^\s/:@\"'…]{0,128}:)(?P<value>[^\s/\"'<>…]{1,256})(?=@)")
_USER_TOKEN = re.compile(r"(?P<head>://)(?P<value>[^\s/:@\"'…]{16,256})(?=@)")
_QUERY = re.compile(
    r"(?P<head>[?&](?:sig|signature|x-amz-signature|x-amz-credential|code|auth)=)"
    r"(?P<value>[A-Za-z0-9%._~+/\-]{16,})",
    re.IGNORECASE,
)
_QUERY_KEY = re.compile(
    r"(?P<head>[?&]key=)(?P<value>(?=[A-Za-z0-9_.\-]{0,80}[A-Z])(?=[A-Za-z0-9_.\-]{0,80}[a-z])[A-Za-z0-9_.\-]{20,})"
)
_WEBHOOK = re.compile(
    r"(?P<head>(?:/api/webhooks/\d{10,22}/|\.webhook\.office\.com/webhookb2/|/bot/v2/hook/"
    r"|/webhook/send\?key=))(?P<value>[A-Za-z0-9_\-@/]{20,})",
    re.ASCII,
)
_FLAG = re.compile(
    r"(?<![A-Za-z0-9_\-])(?P<head>--[A-Za-z0-9_\-]{0,40}"
    r"(?:password|passwd|passphrase|passcode|token|secret|api-?key|access-?key|secret-?key"
    r"|private-?key|auth-?key)[ \t]{1,4}[\"']?)"
    r"(?P<value>[^\s\"'\\;&|<>，。；、！？“”「」『』（）…\-][^\s\"'\\;&|<>，。；、！？“”「」『』（）…]{3,2047})",
    re.IGNORECASE,
)
_TOOL_PASSWORD = re.compile(
    r"(?P<head>(?<![A-Za-z0-9_])sshpass[ \t]{1,4}-p[ \t]{0,4}[\"']?"
    r"|(?<![A-Za-z0-9_])(?:mysql|mysqldump|mysqladmin|mariadb)(?![A-Za-z0-9_])[^\n|;&…]{0,200}?[ \t]-p[\"']?"
    r"|(?<![A-Za-z0-9_])redis-cli(?![A-Za-z0-9_])[^\n|;&…]{0,200}?[ \t]-a[ \t]{1,4}[\"']?"
    r"|(?<![A-Za-z0-9_])docker[ \t]{1,4}login(?![A-Za-z0-9_])[^\n|;&…]{0,200}?[ \t]-p[ \t]{1,4}[\"']?"
    r"|(?<![A-Za-z0-9_])curl(?![A-Za-z0-9_])[^\n|;…]{0,400}?[ \t](?:-u|--user|-U|--proxy-user)[ \t=]{0,4}[\"']?[^\s:\"'…]{1,128}:)"
    r"(?P<value>[^\s\"'\\;&|<>，。；、！？“”「」『』（）…\-][^\s\"'\\;&|<>，。；、！？“”「」『』（）…]{3,2047})"
)
_NETRC = re.compile(
    r"(?<![A-Za-z0-9_])(?P<head>login[ \t]{1,8}[^\s…]{1,128}[ \t]{1,8}password[ \t]{1,8})"
    r"(?P<value>[^\s，。；、！？“”「」『』（）…]{4,512})",
)
_ELEMENT = re.compile(
    r"(?P<head><[A-Za-z0-9_:.\-]{0,64}(?:password|passwd|passphrase|secret|token|api-?key|密码|密钥|令牌)"
    r"(?:[ \t][^<>…\n]{0,200})?>)(?P<value>[^<>\s…]{4,2048})(?=</)",
    re.IGNORECASE,
)
_KEY_BLOCK = re.compile(
    r"(?P<head>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)"
    r"(?:[^\-]*+(?:-(?!----)[^\-]*+)*+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|[A-Za-z0-9+/=:,\s\\]*)"
)
MIN_KEY_CHARS = 16
"""A shorter block is somebody talking about key blocks."""


def _replace_value(match: re.Match[str]) -> str:
    value = match["value"]
    if match.string.startswith(MASK, match.end("value")) or is_placeholder(value):
        return match[0]
    return f"{match['head']}{mask_value(value)}{match[0][len(match['head']) + len(value) :]}"


def _replace_any(match: re.Match[str]) -> str:
    """Mask whatever stands in the place: it is a password, however plain it looks."""
    if match.string.startswith(MASK, match.end("value")) or match["value"] == "password":
        return match[0]
    return f"{match['head']}{mask_value(match['value'])}{match[0][match.end('value') - match.start() :]}"


def _replace_unlike_words(match: re.Match[str]) -> str:
    """Mask what is no word: where talk stands as often as a secret."""
    value = match["value"].rstrip(".,:;)]}!?）")
    plain = value.isalpha() or value.isdigit() or not (is_mixed(value) or len(value) >= _LONG)
    if plain or value.startswith("/"):
        return match[0]
    return _replace_value(match)


_LONG = 20


def _replace_mixed(match: re.Match[str]) -> str:
    return _replace_value(match) if is_mixed(match["value"]) else match[0]


def _replace_block(match: re.Match[str]) -> str:
    body = match.end() - match.end("head")
    if match.string.startswith(MASK, match.end("head")) or body < MIN_KEY_CHARS:
        return match[0]
    return f"{match['head']}{MASK}"


@dataclass(frozen=True, slots=True)
class _Place:
    words: tuple[str, ...]
    """One of them, in lower case, is in every text that the pattern can match."""
    pattern: re.Pattern[str]
    replace: Callable[[re.Match[str]], str]


_PLACES: Sequence[_Place] = (
    _Place(("private key",), _KEY_BLOCK, _replace_block),
    _Place(("://",), _USER_PASSWORD, _replace_value),
    _Place(("://",), _USER_TOKEN, _replace_mixed),
    _Place(("cookie",), _COOKIE, _replace_value),
    _Place(("authorization",), _AUTHORIZATION, _replace_unlike_words),
    _Place(("bearer", "basic", "token", "digest", "apikey"), _SCHEME, _replace_value),
    _Place(("sig", "x-amz-", "code=", "auth="), _QUERY, _replace_value),
    _Place(("key=",), _QUERY_KEY, _replace_mixed),
    _Place(("hook",), _WEBHOOK, _replace_value),
    _Place(("--",), _FLAG, _replace_unlike_words),
    _Place(
        ("sshpass", "mysql", "mariadb", "redis", "docker", "curl"), _TOOL_PASSWORD, _replace_any
    ),
    _Place(("login",), _NETRC, _replace_any),
    _Place(("</",), _ELEMENT, _replace_value),
)


def mask_places(page: Page) -> None:
    """Mask what stands where only secrets stand."""
    lower = page.read.lower()
    for place in _PLACES:
        if any(word in lower for word in place.words):
            page.mask(replaced_spans(page.read, place.pattern, place.replace))
