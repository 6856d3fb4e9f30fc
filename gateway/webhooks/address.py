"""Which addresses webhooks may have: `https` to public names, and what the operator lists.

Where a public name leads is checked at each delivery; see `Exchange`.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

import httpx

from gateway.errors import UnprocessableEntity
from policies.verdict import Refused
from policies.web import ANY_HOST, HTTPS, MAX_URL_CHARS, check_url

_UNSAFE = re.compile(r"[^\x21-\x7e]|[\\#]|^[^/]*//[^/?]*@")
_NOT_PLAIN = (
    "`url` must have no user or password, no blank, `\\` or `#`, and letters beyond ASCII as %XX."
)
_REFUSED = (
    "`url` must use https and a public host with the usual port; the operator lists other hosts in"
    " CANDOR_WEBHOOK_HOSTS."
)
_PORTS = range(1, 65_536)


@dataclass(frozen=True, slots=True)
class Address:
    """An address that may be delivered to."""

    host: str
    """In ASCII."""
    is_listed: bool
    """True: it may lead to any address, also a private one."""


def check_address(url: str, listed: Collection[str]) -> Address:
    """Return where an address leads; `listed` are hosts, each with or without a port.

    Raise `UnprocessableEntity` if it must not be delivered to.
    """
    host = _listed_host(url, listed)
    if host is not None:
        return Address(host, is_listed=True)
    try:
        return Address(check_url(url, {ANY_HOST}, HTTPS), is_listed=False)
    except Refused as exc:
        told = _NOT_PLAIN if _UNSAFE.search(url) else _REFUSED
        raise UnprocessableEntity(told, details={"field": "url"}) from exc


def _listed_host(url: str, listed: Collection[str]) -> str | None:
    if len(url) > MAX_URL_CHARS or _UNSAFE.search(url):
        return None
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return None
    if parsed.scheme not in {"http", "https"} or parsed.userinfo:
        return None
    name = f"[{parsed.host}]" if ":" in parsed.host else parsed.host
    port = (443 if parsed.scheme == "https" else 80) if parsed.port is None else parsed.port
    if port not in _PORTS:
        raise UnprocessableEntity(
            f"`url` has the port {port}; it must be from {_PORTS[0]} to {_PORTS[-1]}.",
            details={"field": "url"},
        )
    return parsed.host if {name, f"{name}:{port}"} & set(listed) else None
