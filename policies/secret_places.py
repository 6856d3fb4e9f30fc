"""Secrets that are known by their place: in headers, addresses, command lines, elements and key blocks."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from policies.masks import MASK, mask_value, replaced_spans
from policies.secret_looks import is_mixed, is_placeholder, looks_chosen, looks_random
from policies.secret_shadow import Page
from policies.secret_talk import AND_INSIDE

_SCHEME = re.compile(
    r"(?<![A-Za-z0-9_])(?P<head>(?:bearer|basic|token|digest|apikey)[ \t]{1,4})"
    r"(?P<value>(?=[A-Za-z._~+/\-]{0,200}[0-9=])[A-Za-z0-9._~+/=\-]{12,})",
    re.IGNORECASE,
)
_AUTHORIZATION = re.compile(
    r"(?<![A-Za-z0-9_])(?P<head>authorization\\{0,7}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,7}[\"']?"
    r"(?:(?:bearer|basic|token|digest|apikey|key|negotiate)[ \t]{1,4}"
    # services have names of their own for it: `Bot`, `SSWS`, `GenieKey`
    r"|[A-Za-z][A-Za-z0-9\-]{1,30}[ \t]{1,4}"
    r"(?=[A-Za-z._~+/:=\-]{0,200}[0-9])(?=[A-Za-z0-9._~+/:=\-]{16}))?)"
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
_ARGUMENT = (
    r"(?P<value>[^\s\"'\\;&|<>，。；、！？“”「」『』（）…\-]"
    rf"(?:[^\s\"'\\;&|<>，。；、！？“”「」『』（）…]|{AND_INSIDE}){{3,2047}})"
)
_FLAG = re.compile(
    r"(?<![A-Za-z0-9_\-])(?P<head>--?[A-Za-z0-9_\-]{0,40}"
    r"(?:password|passwd|passphrase|passcode|token|secret|api-?key|access-?key|secret-?key"
    r"|private-?key|auth-?key|storepass|keypass|(?<=-)pass)[ \t]{1,4}(?!(?:pass|env|file|fd):)[\"']?)"
    rf"{_ARGUMENT}",
    re.IGNORECASE,
)
_TOOL_PASSWORD = re.compile(
    r"(?<![A-Za-z0-9_])(?P<head>sshpass[ \t]{1,4}-p[ \t]{0,4}[\"']?"
    r"|(?:mysql|mysqldump|mysqladmin|mariadb)(?![A-Za-z0-9_])[^\n|;&…]{0,200}?[ \t]-p[\"']?"
    r"|redis-cli(?![A-Za-z0-9_])[^\n|;&…]{0,200}?[ \t]-a[ \t]{1,4}[\"']?"
    r"|(?:7z[ar]?|rar|unrar)(?![A-Za-z0-9_])[^\n|;&…]{0,200}?[ \t]-h?p[\"']?"
    r"|(?:zip|unzip|sqlcmd|bcp|mosquitto_(?:pub|sub))(?![A-Za-z0-9_])[^\n|;&…]{0,200}?[ \t]-P[ \t]{0,4}[\"']?"
    r"|openssl(?![A-Za-z0-9_])[^\n|;&…]{0,200}?[ \t](?:-k[ \t]{1,4}|pass:)[\"']?"
    r"|htpasswd[ \t]{1,4}-[A-Za-z]{0,8}b[A-Za-z]{0,8}[ \t]{1,4}[^\s…]{1,256}[ \t]{1,4}[^\s…]{1,128}[ \t]{1,4}[\"']?"
    r"|ldap(?:search|add|modify|delete|passwd|whoami)(?![A-Za-z0-9_])[^\n|;&…]{0,200}?[ \t]-w[ \t]{1,4}[\"']?"
    r"|ssh-keygen(?![A-Za-z0-9_])[^\n|;&…]{0,200}?[ \t]-[NP][ \t]{1,4}[\"']?"
    r"|(?:smbclient|smbmap|rpcclient)(?![A-Za-z0-9_])[^\n|;&…]{0,200}?[ \t]-U[ \t]{0,4}[\"']?[^\s%\"'…]{1,64}%"
    r"|[Cc]onvert[Tt]o-[Ss]ecure[Ss]tring[ \t]{1,4}(?:-[Ss]tring[ \t]{1,4})?[\"']"
    r"|(?:docker|podman|helm)[ \t]{1,4}(?:registry[ \t]{1,4})?login(?![A-Za-z0-9_])[^\n|;&…]{0,200}?[ \t]-p[ \t]{1,4}[\"']?"
    r"|curl(?![A-Za-z0-9_])[^\n|;…]{0,400}?[ \t](?:-u|--user|-U|--proxy-user)[ \t=]{0,4}[\"']?[^\s:\"'…]{1,128}:)"
    rf"{_ARGUMENT}"
)
_DIRECTIVE = re.compile(
    rf"(?<![A-Za-z0-9_])(?P<head>(?:requirepass|masterauth)[ \t]{{1,4}}[\"']?){_ARGUMENT}",
    re.IGNORECASE,
)
_USER_AND_PASSWORD = re.compile(
    # of whatever program; `docker run -u 1 -p 80:80` does not look like a password
    r"(?<![^ \t])(?P<head>(?:-u|--user(?:name)?)[ \t=]{1,4}[^\s…]{1,128}[ \t]"
    r"(?:[^\n|;&…]{0,100}?[ \t])?-p[ \t]{1,4}[\"']?)"
    rf"{_ARGUMENT}"
)
_AUTH_PAIR = re.compile(
    r"(?<![A-Za-z0-9])(?P<head>auth=\([\"'][^\"'\n…]{0,128}[\"'],[ \t]?[\"'])"
    r"(?P<value>[^\"'\s…]{4,256})(?=[\"'])"
)
_PIPED = re.compile(
    r"(?<![A-Za-z0-9_])(?P<head>(?:echo|printf)[ \t]{1,4}(?:-n[ \t]{1,4})?[\"']?)(?P<value>[^\s\"'|…]{4,256})"
    r"(?=[\"']?[ \t]{0,4}\|[ \t]{0,4}(?:sudo[ \t][^\n|…]{0,40}-[A-Za-z]{0,4}S"
    r"|[^\n|…]{1,200}--?(?:password|token|passphrase|with-token|secret)(?:-?stdin)?(?![A-Za-z0-9])))"
)
_SQL = re.compile(
    r"(?<![A-Za-z0-9_])(?P<head>(?:identified[ \t]{1,4}(?:with[ \t]{1,4}[^\s…]{1,64}[ \t]{1,4})?(?:by|as)"
    r"|(?:with|encrypted|login|by)[ \t]{1,4}password)[ \t]{1,4})"
    r"(?P<quote>[\"'])(?P<value>[^\"'\n…]{4,256})(?=[\"'])",
    re.IGNORECASE,
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


_VARIABLE = re.compile(r"\$\{?\w+\}?")


def _replace_value(match: re.Match[str]) -> str:
    value = match["value"]
    if match.string.startswith(MASK, match.end("value")) or is_placeholder(value):
        return match[0]
    return f"{match['head']}{mask_value(value)}{match[0][len(match['head']) + len(value) :]}"


def _replace_any(match: re.Match[str]) -> str:
    """Mask whatever stands in the place: it is a password, however plain it looks."""
    value = match["value"]
    if match.string.startswith(MASK, match.end("value")) or value == "password":
        return match[0]
    if _VARIABLE.fullmatch(value):
        return match[0]
    return f"{match['head']}{mask_value(match['value'])}{match[0][match.end('value') - match.start() :]}"


def _replace_unlike_words(match: re.Match[str]) -> str:
    """Mask what is no word: where talk stands as often as a secret."""
    value = match["value"].rstrip(".,:;)]}!?）")
    is_word = value.isalpha() and not looks_random(value)
    plain = is_word or value.isdigit() or not (is_mixed(value) or len(value) >= _LONG)
    if plain or value.startswith("/") or _NAME_OF_A_SCHEME.fullmatch(value):
        return match[0]
    return _replace_value(match)


_LONG = 20
_NAME_OF_A_SCHEME = re.compile(r"[A-Z][A-Z0-9]*(?:-[A-Z0-9]+){1,3}")
"""`AWS4-HMAC-SHA256`."""


def _replace_chosen(match: re.Match[str]) -> str:
    """Mask what people choose or programs make, where much else stands, too."""
    value = match["value"]
    return _replace_value(match) if looks_chosen(value) or looks_random(value) else match[0]


def _replace_quoted(match: re.Match[str]) -> str:
    value = match["value"]
    if is_placeholder(value):
        return match[0]
    return f"{match['head']}{match['quote']}{mask_value(value)}"


def _replace_told_token(match: re.Match[str]) -> str:
    """Mask what stands behind a scheme without its header, unless prose goes on: `Bearer authentication2`."""
    return match[0] if _WORD_WITH_NUMBER.fullmatch(match["value"]) else _replace_value(match)


_WORD_WITH_NUMBER = re.compile(r"[A-Za-z]?[a-z\-]+\d{0,4}[.]?")


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


TOOLS = (
    *("sshpass", "mysql", "mysqldump", "mysqladmin", "mariadb", "redis-cli", "curl"),
    *("docker", "podman", "helm", "7z", "7za", "7zr", "rar", "unrar", "zip", "unzip"),
    *("sqlcmd", "bcp", "mosquitto_pub", "mosquitto_sub", "openssl", "htpasswd"),
    *("requirepass", "masterauth", "ssh-keygen", "smbclient", "smbmap", "rpcclient"),
    *("ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldappasswd", "ldapwhoami"),
    *("echo", "printf", "convertto-securestring"),
)
"""Programs that take a password on their command line, and settings that are told like one."""
_TOOL_WORDS = (
    *("sshpass", "mysql", "mariadb", "redis-cli", "curl", "docker", "podman", "helm", "7z", "rar "),
    *("zip ", "sqlcmd", "bcp", "mosquitto_", "openssl", "htpasswd"),
    *("convertto-securestring", "ldap", "ssh-keygen", "smb", "rpcclient"),
)
_PLACES: Sequence[_Place] = (
    _Place(("private key",), _KEY_BLOCK, _replace_block),
    _Place(("://",), _USER_PASSWORD, _replace_value),
    _Place(("://",), _USER_TOKEN, _replace_mixed),
    _Place(("cookie",), _COOKIE, _replace_value),
    _Place(("authorization",), _AUTHORIZATION, _replace_unlike_words),
    _Place(("bearer", "basic", "token", "digest", "apikey"), _SCHEME, _replace_told_token),
    _Place(("sig", "x-amz-", "code=", "auth="), _QUERY, _replace_value),
    _Place(("key=",), _QUERY_KEY, _replace_mixed),
    _Place(("hook",), _WEBHOOK, _replace_value),
    _Place(("--", "pass", "-token", "-secret", "-apikey"), _FLAG, _replace_unlike_words),
    _Place(_TOOL_WORDS, _TOOL_PASSWORD, _replace_any),
    _Place(("requirepass", "masterauth"), _DIRECTIVE, _replace_chosen),
    _Place((" -p",), _USER_AND_PASSWORD, _replace_chosen),
    _Place(("auth=(",), _AUTH_PAIR, _replace_value),
    _Place(("echo ", "printf "), _PIPED, _replace_any),
    _Place(("identified", "password"), _SQL, _replace_quoted),
    _Place(("login",), _NETRC, _replace_any),
    _Place(("</",), _ELEMENT, _replace_value),
)


def mask_places(page: Page) -> None:
    """Mask what stands where only secrets stand."""
    text = page.read
    lower = text.lower()
    for place in _PLACES:
        for word in place.words:
            if word in lower:
                page.mask(replaced_spans(text, place.pattern, place.replace))
                text = page.read
                break
