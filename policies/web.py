"""Judges an address that the WebFetch tool would open: `https`, a public name, on the list of hosts.

The agent's process resolves the name and fetches by itself, so a name that resolves to a private address
cannot be seen here; hence a list of exact hosts, empty by default.
"""

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

from policies.paths import has_hidden_character, show
from policies.verdict import Deny

ANY_HOST = "*"
MAX_URL_CHARS = 2048
HTTPS_PORT = 443

_UNSAFE = re.compile(r"[\s\\<>\"'`{}|^]")
_LOCAL_SUFFIXES = (
    ".local",
    ".localhost",
    ".internal",
    ".lan",
    ".home",
    ".corp",
    ".home.arpa",
    ".onion",
)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def _read_host(url: str) -> str | None:
    """Give the address's host in ASCII; `None`: the address is not a plain `https` one."""
    if len(url) > MAX_URL_CHARS or _UNSAFE.search(url) or has_hidden_character(url):
        return None
    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port
        if split.scheme != "https" or not host or "@" in split.netloc:
            return None
        return host.encode("idna").decode() if port in {None, HTTPS_PORT} else None
    except ValueError:  # also UnicodeError: a name that no resolver takes
        return None


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
            and not host.endswith(_LOCAL_SUFFIXES)
        )
    return False


def find_url_fault(url: str, hosts: Collection[str]) -> Deny | None:
    """Refuse an address unless its host is in `hosts`; `*` there stands for every public name."""
    host = _read_host(url)
    if host is None or not _is_public_name(host):
        return Deny(
            "url_form",
            "Only plain https addresses of public hosts may be fetched.",
            "Use the page's https address with its full host name.",
        )
    if host in hosts or ANY_HOST in hosts:
        return None
    return Deny(
        "host_not_allowed",
        f"The host {show(host)} is not on the list of allowed hosts.",
        "Ask the person for the page's content, or for the host to be allowed.",
    )
