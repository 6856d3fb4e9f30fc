"""Masks secrets, accounts and internal addresses in a text with the name of their kind."""

import re
from collections.abc import Callable, Sequence
from ipaddress import ip_address, ip_network
from typing import Final

from policies.secrets import Masked, mask_secrets_counted

_INNER_ENDS: Final = r"(?:internal|intranet|intra|corp|lan|local|localdomain|private|home\.arpa)"
_INNER_LABELS: Final = frozenset({"internal", "intranet", "intra", "corp", "lan"})
_CODE: Final = frozenset(
    "self this cls super window module settings config options threading werkzeug".split()
)
"""Names before a dot in code, as in `self.local`."""
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "[::1]"})  # noqa: S104  named, not bound
_INNER_NETWORKS: Final = tuple(
    ip_network(network)
    for network in (
        *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"),
        *("fc00::/7", "fe80::/10"),
    )
)


def redact(text: str, *, known_secrets: Sequence[str] = (), keeps_contacts: bool = False) -> Masked:
    """Mask secrets, internal addresses, and, unless they are kept, contacts; idempotent.

    Addresses, accounts and contacts become `[internal URL]`, `[account]`, `[phone]` and so on;
    those of `localhost` stay.
    """
    masked = mask_secrets_counted(text, known=known_secrets)
    for sign, pattern, replace in _PLACES if keeps_contacts else (*_PLACES, *_CONTACTS):
        if sign in masked.text:
            masked = _substituted(masked, pattern, replace)
    return masked


def _substituted(
    masked: Masked, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str]
) -> Masked:
    """Replace the matches of a pattern; unchanged matches do not count."""
    count = masked.count

    def counted(match: re.Match[str]) -> str:
        nonlocal count
        replaced = replace(match)
        count += replaced != match[0]
        return replaced

    return Masked(pattern.sub(counted, masked.text), count)


def _url(match: re.Match[str]) -> str:
    return "[internal URL]" if _is_inner_host(match["host"]) else match[0]


def _address(match: re.Match[str]) -> str:
    return "[internal address]" if _is_inner_ip(match[0]) else match[0]


def _host(match: re.Match[str]) -> str:
    first, _, rest = match[0].lower().partition(".")
    return match[0] if first in _CODE and "." not in rest else "[internal host]"


_Place = tuple[str, re.Pattern[str], Callable[[re.Match[str]], str]]

# an address with a scheme, also `jdbc:mysql://…`
_URL: Final = re.compile(
    r"""(?ai)(?<![\w+])(?:[a-z][a-z0-9+\-]{1,20}:){1,2}//(?:[^\s/@\"'<>，。；）]{1,300}@)?"""
    r"(?P<host>\[[0-9a-fA-F:.]{2,45}\]|[\w.\-]{1,253})(?P<port>:\d{1,5})?"
    r"""(?P<rest>(?:[/?#][^\s\"'<>`，。；、！？）」』】]*)?)""",
)
# `user:password@` before a host
_CREDENTIALS: Final = re.compile(
    r"""(?a)(?<![\w/:.@+\-])[\w.+\-]{1,64}:[^\s@/:\"'<>,，。]{3,128}@"""
    r"(?=(?:[A-Za-z][\w\-]*(?:\.[\w\-]+)+|localhost|\d{1,3}(?:\.\d{1,3}){3})\b)(?!sha256)",
)
# with a mask or a port
_IPV4: Final = re.compile(
    r"(?a)(?<![\w.\-])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)"
    r"(?:/\d{1,2}|:\d{1,5})?(?![\w]|\.\d)",
)
# a name below an inner domain
_HOST: Final = re.compile(
    rf"(?ai)(?<![\w./\-])(?:[a-z0-9](?:[a-z0-9\-]{{0,62}})\.){{1,8}}{_INNER_ENDS}(?::\d{{1,5}})?"
    r"(?![\w(\-]|\.\w)",
)
# of a private network or a link
_IPV6: Final = re.compile(
    r"(?ai)(?<![\w:.])(?:f[cd][0-9a-f]{2}"
    r"|fe[89ab][0-9a-f])(?::{1,2}[0-9a-f]{0,4}){1,7}(?:%\w{1,16})?(?:/\d{1,3})?(?![\w:])",
)
_NAMED: Final = r"""[\"']?\s{0,4}[:=：]\s{0,4}[\"']?)(?!\[)(?P<value>[A-Za-z0-9][\w.@+\-]{1,63})"""
# `user name: …`
_ACCOUNT: Final = re.compile(
    "(?ai)(?P<head>(?:账号|帐号|账户名|登录名|用户名"
    rf"|(?<![A-Za-z0-9])user[_ \-]?name){_NAMED}",
)
# a share of Windows
_SHARE: Final = re.compile(
    r"(?a)(?<![\w:\\.])\\\\[A-Za-z0-9][\w.\-]{1,63}\\[\w$.\-]+(?:\\[\w$.\-]+)*",
)
# an address of a person
_EMAIL: Final = re.compile(
    r"(?a)(?<![\w.+\-/:@])[A-Za-z0-9][\w.+\-]{0,63}@(?:[A-Za-z0-9\-]{1,63}\.){1,6}[A-Za-z]"
    r"{2,24}(?![\w\-]|:[\w/~])",
)
# with a country, of North America, a Chinese mobile, a Chinese landline
_PHONE: Final = re.compile(
    r"(?a)(?<![\w.+/:\-])(?:\+\d{1,3}(?:[ .\-]?\(?\d{2,4}\)?){2,5}|(?:\(\d{3}\) ?"
    r"|\d{3}[ \-])\d{3}[ \-]\d{4}"
    r"|1[3-9]\d[ \-]?\d{4}[ \-]?\d{4}|0\d{2,3}-\d{7,8})(?![\w\-/:]|\.\d)",
)
# `account: …`, where contacts are masked, too
_LOGIN: Final = re.compile(
    rf"(?ai)(?P<head>(?<![\w\-])(?:account|login|账户|登录){_NAMED}",
)
_PLACES: Sequence[_Place] = (
    ("://", _URL, _url),
    ("@", _CREDENTIALS, lambda _: "[internal credentials]@"),
    (".", _IPV4, _address),
    (".", _HOST, _host),
    (":", _IPV6, lambda _: "[internal address]"),
    ("", _ACCOUNT, lambda match: f"{match['head']}[account]"),
    ("\\\\", _SHARE, lambda _: "[internal share]"),
)
"""A text that must be present for the pattern to be tried, the pattern, the replacement."""

_CONTACTS: Sequence[_Place] = (
    ("@", _EMAIL, lambda _: "[e-mail]"),
    ("", _PHONE, lambda _: "[phone]"),
    ("", _LOGIN, lambda match: f"{match['head']}[account]"),
)


def _is_inner_host(host: str) -> bool:
    host = host.lower().rstrip(".")
    if host in _LOOPBACK:
        return False
    if host.startswith("["):
        return _is_inner_ip(host[1:-1])
    labels = host.split(".")
    if all(label.isdigit() for label in labels):
        return _is_inner_ip(host)
    if len(labels) == 1:
        return any(map(str.isalpha, host))
    inner_end = bool(re.fullmatch(_INNER_ENDS, labels[-1])) or host.endswith(".home.arpa")
    return inner_end or any(label in _INNER_LABELS for label in labels[:-2])


def _is_inner_ip(text: str) -> bool:
    bare = text.partition("/")[0].partition("%")[0]
    bare = bare if bare.count(":") > 1 else bare.partition(":")[0]
    try:
        address = ip_address(bare)
    except ValueError:
        return False
    return any(address in network for network in _INNER_NETWORKS)
