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
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

import idna

from policies.denials import denied
from policies.visible_text import has_hidden_character, show

ANY_HOST = "*"
MAX_URL_CHARS = 2048
HTTPS = {"https": 443}
HTTP_AND_HTTPS = {**HTTPS, "http": 80}
"""The schemes that an address may have, with the only port of each."""
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


_NOT_PUBLIC = tuple(
    map(ipaddress.IPv4Network, ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24"))
)
"""Clouds' own services, and what versions of Python differ about."""
_UNICAST = ipaddress.IPv6Network("2000::/3")
_IPV4_BEHIND = ipaddress.IPv6Network("64:ff9b::/96")
"""The last 32 bits are the IPv4 address that a gateway of the network connects to."""


def is_public_address(text: str) -> bool:
    """Return whether an IP address belongs to the public internet, also if it stands in another."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped
        if address in _IPV4_BEHIND:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is None:
            has_other_inside = address.sixtofour is not None or address.teredo is not None
            return address in _UNICAST and address.is_global and not has_other_inside
        address = inner
    is_plain = address.is_global and not address.is_multicast
    return is_plain and not any(address in network for network in _NOT_PUBLIC)


def _read_host(url: str, ports: Mapping[str, int] = HTTPS) -> str | None:
    """Return the host in ASCII; `None` if the address is not a plain one of these schemes."""
    if len(url) > MAX_URL_CHARS or _UNSAFE.search(url) or has_hidden_character(url):
        return None
    try:
        split = urlsplit(url)
        port = ports.get(split.scheme)
        if port is None or "@" in split.netloc or split.port not in {None, port}:
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


def check_url(url: str, hosts: Collection[str], ports: Mapping[str, int] = HTTPS) -> str:
    """Return the host of an address; refuse it unless it is in `hosts`; `*` there stands for every
    public name.
    """
    host = _read_host(url, ports)
    if host is None or not _is_public_name(host):
        raise denied("url_form")
    if host not in hosts and ANY_HOST not in hosts:
        raise denied("host_not_allowed", show(host))
    return host
