"""The judgement of an address that the WebFetch tool would open: `https`, a public name, a listed
host.

The agent's process resolves the name and fetches by itself, so a name that resolves to a private
address cannot be seen here, except for the services that resolve every name to the address in it. A
list of exact hosts is the remedy, also against sending data out in an address; the rules require
one to offer the tool.

Names are compared as they will be opened: letters beyond ASCII are mapped as the URL standard says
(UTS 46, not transitional), and not as Python's `idna` codec does it, by which `fußball.de` is
`fussball.de`.
"""

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

import idna

from policies.denials import denied
from policies.visible_text import has_hidden_character, show

ANY_HOST = "*"
MAX_URL_CHARS = 2048
HTTPS_PORT = 443
_MAX_OCTET = 255

_UNSAFE = re.compile(r"[\s\\<>\"`{}|^]")
_READ_DIFFERENTLY = "ẞ"
"""`ss` to programs with tables from before Unicode 15.1, `ß` to later ones: two different hosts."""
_LOCAL_NAMES = frozenset(
    # local names
    "local localhost localdomain internal intranet private corp home lan home.arpa onion test "
    "invalid "
    "alt in-addr.arpa ip6.arpa svc intern consul lab localnet fritz.box mshome.net "
    # names that resolve to this machine, or to the address that stands in the name
    "nip.io sslip.io xip.io traefik.me localtest.me lvh.me vcap.me lacolhost.com localho.st fuf.me "
    "1u.ms rbndr.us xip.name localhost.direct local.gd smackaho.st localdev.me "
    "metadata.tencentyun.com "
    "localhost.domaincontrol.com spoofed.burpcollaborator.net".split()
)
"""Neither these names nor what lies below them is public."""
_ADDRESS_INSIDE = re.compile(r"(?<!\d)(?=(\d{1,3}(?:[.-]\d{1,3}){3})(?!\d))")
"""Looks ahead, so that overlapping addresses are found."""
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def _read_host(url: str) -> str | None:
    """Return the host in ASCII; `None` if the address is not a plain `https` one."""
    if len(url) > MAX_URL_CHARS or _UNSAFE.search(url) or has_hidden_character(url):
        return None
    try:
        split = urlsplit(url)
        if split.scheme != "https" or "@" in split.netloc or split.port not in {None, HTTPS_PORT}:
            return None
        # not `hostname`: Python makes ς of a capital sigma at the end of a word, names keep to σ
        return _write_in_ascii(split.netloc.partition(":")[0])
    except ValueError:  # also UnicodeError
        return None


def _write_in_ascii(host: str) -> str | None:
    if host.isascii():
        return host.lower()
    if _READ_DIFFERENTLY in host:
        return None
    return idna.encode(host, uts46=True, transitional=False).decode()


def _holds_inner_address(host: str) -> bool:
    """Return whether an IPv4 address that is not public stands in a name, as `10.0.0.1` or
    `10-0-0-1`.
    """
    for match in _ADDRESS_INSIDE.finditer(host):
        octets = [int(octet) for octet in re.split("[.-]", match[1])]
        if max(octets) <= _MAX_OCTET:
            address = ipaddress.IPv4Address(bytes(octets))
            if not address.is_global or address.is_multicast:
                return True
    return False


def _is_public_name(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        labels = host.split(".")
        plain = all(_LABEL.fullmatch(label) for label in labels)
        return (
            plain
            and len(labels) > 1
            and not labels[-1].isdigit()
            and not _holds_inner_address(host)
            and _LOCAL_NAMES.isdisjoint(".".join(labels[i:]) for i in range(len(labels)))
        )
    return False


def read_listed_host(text: str) -> str | None:
    """Return a host of the rules in ASCII, as it is compared; `None` if it is not a public name."""
    host = _read_host(f"https://{text}/")
    plain = host is not None and text.isprintable() and not set(text) & set("/:?#@%")
    return host if host is not None and plain and _is_public_name(host) else None


def check_url(url: str, hosts: Collection[str]) -> None:
    """Refuse an address unless its host is in `hosts`; `*` there stands for every public name."""
    host = _read_host(url)
    if host is None or not _is_public_name(host):
        raise denied("url_form")
    if host not in hosts and ANY_HOST not in hosts:
        raise denied("host_not_allowed", show(host))
