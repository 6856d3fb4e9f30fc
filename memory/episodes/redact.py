"""Masks secrets, accounts and internal addresses in a text with the name of their kind."""

import re
from collections.abc import Callable, Sequence
from ipaddress import ip_address, ip_network
from typing import Final

from policies.patterns import read_patterns
from policies.secrets import Masked, mask_secrets_counted

_PATTERNS = read_patterns(__file__)
_INNER_ENDS: Final = _PATTERNS["inner_ends"]
_INNER_LABELS: Final = frozenset({"internal", "intranet", "intra", "corp", "lan"})
_CODE: Final = frozenset(_PATTERNS["code"].split())
"""Names before a dot in code, as in `self.local`."""
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "[::1]"})  # noqa: S104  named, not bound
_INNER_NETWORKS: Final = tuple(map(ip_network, _PATTERNS["inner_networks"].split()))


def redact(text: str, *, known_secrets: Sequence[str] = (), keeps_contacts: bool = False) -> Masked:
    """Mask secrets, internal addresses, and, unless they are kept, contacts; idempotent.

    Addresses, accounts and contacts become `[internal URL]`, `[account]`, `[phone]` and so on; those of
    `localhost` stay.
    """
    masked = mask_secrets_counted(text, known=known_secrets)
    for sign, pattern, replace in _PLACES if keeps_contacts else (*_PLACES, *_CONTACTS):
        if sign in masked.text:
            masked = _substituted(masked, pattern, replace)
    return masked


def _substituted(
    masked: Masked, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str]
) -> Masked:
    """Replace the matches of a pattern; unchanged ones do not count."""
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

_PLACES: Sequence[_Place] = (
    ("://", re.compile(_PATTERNS["url"]), _url),
    ("@", re.compile(_PATTERNS["credentials"]), lambda _: "[internal credentials]@"),
    (".", re.compile(_PATTERNS["ipv4"]), _address),
    (".", re.compile(_PATTERNS["host"]), _host),
    (":", re.compile(_PATTERNS["ipv6"]), lambda _: "[internal address]"),
    ("", re.compile(_PATTERNS["account"]), lambda match: f"{match['head']}[account]"),
    ("\\\\", re.compile(_PATTERNS["share"]), lambda _: "[internal share]"),
)
"""A text that must be present for the pattern to be tried, the pattern, the replacement."""

_CONTACTS: Sequence[_Place] = (
    ("@", re.compile(_PATTERNS["email"]), lambda _: "[e-mail]"),
    ("", re.compile(_PATTERNS["phone"]), lambda _: "[phone]"),
    ("", re.compile(_PATTERNS["login"]), lambda match: f"{match['head']}[account]"),
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
