"""Checks of `Host` and `Origin` against the server's own names and the pages that it may trust.

Another site's page can make a browser send requests here, and its DNS name can be made to point
here (rebinding). Neither can forge `Host` or `Origin`. An IP address as `Host` cannot be rebound:
on a wildcard address, where the machine's own addresses are not known, every IP address is
accepted.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.errors import Forbidden

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_DIAGRAMS = re.compile(r"/static/(?:[\w.-]+/)?diagram/")
"""Public files of the frame that draws diagrams. The frame has no origin, so its requests say
`null`."""
_OWN_SITES = frozenset({"same-origin", "none"})
_AUTHORITY = re.compile(
    r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[A-Za-z0-9.\-_]+))(?::(?P<port>[0-9]{0,5}))?"
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class Authority:
    """A host and its port."""

    host: str
    """In lower case; an IP address in its shortest form."""
    port: int | None


@dataclass(frozen=True, slots=True)
class OwnHosts:
    """The names under which this server is reached."""

    names: frozenset[str]
    any_address: bool
    origins: frozenset[str] = frozenset()
    """Other pages that may send requests and read the answers, as `scheme://host[:port]`."""

    def holds(self, host: str) -> bool:
        """Return whether `host` is one of them."""
        return host in self.names or (self.any_address and _ip_address(host) is not None)


def own_hosts(
    bound_to: str, more_names: Iterable[str] = (), origins: Iterable[str] = ()
) -> OwnHosts:
    """Return the server's names for the address that it listens on, and those it is told of."""
    address = _ip_address(bound_to)
    wildcard = address is not None and address.is_unspecified
    names = _LOOPBACK_NAMES | {_short(bound_to)} | {_short(name) for name in more_names}
    return OwnHosts(names, any_address=wildcard, origins=frozenset(origins))


def address_of(host: str, port: int) -> str:
    """Return the address that a person on this machine opens; the server refuses
    other host names.
    """
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  compared, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server on that address."""
    address = _ip_address(host)
    return host == "localhost" if address is None else address.is_loopback


def read_authority(text: str) -> Authority | None:
    """Parse `host`, `host:port`, `[six]` or `[six]:port`; None for any other form."""
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return None
    six, port = match["six"], match["port"]
    if six is not None and not isinstance(_ip_address(six), ipaddress.IPv6Address):
        return None
    if port and not 0 < int(port) <= _MAX_PORT:
        return None
    return Authority(_short(six or match["name"]), int(port) if port else None)


class HostGuard:
    """Refuses a request whose `Host`, or the page that sent it, is not this server's."""

    def __init__(self, app: ASGIApp, *, own: OwnHosts) -> None:
        self._app = app
        self._own = own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on the requests for this server."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host = self._check_host(headers.getlist("host"))
            if scope["method"] not in SAFE_METHODS or not _DIAGRAMS.match(scope["path"]):
                self._check_page(scope["method"], headers, host)
        await self._app(scope, receive, send)

    def _check_host(self, given: Sequence[str]) -> Authority:
        host = read_authority(given[0]) if len(given) == 1 else None
        if host is None or not self._own.holds(host.host):
            raise Forbidden("The Host of this request is not a name of this server.")
        return host

    def _check_page(self, method: str, headers: Headers, host: Authority) -> None:
        origins = headers.getlist("origin")
        # a browser also says so of a page of the same name that came without TLS
        is_own_site = _OWN_SITES.issuperset(headers.getlist("sec-fetch-site"))
        if origins:
            is_listed = len(origins) == 1 and origins[0] in self._own.origins
            is_page = all(self._is_own_page(origin, host) for origin in origins)
            is_own = is_listed or (is_page and is_own_site)
        else:
            is_link = method in SAFE_METHODS and headers.getlist("sec-fetch-mode") == ["navigate"]
            is_own = is_link or is_own_site
        if not is_own:
            raise Forbidden("This request comes from a web page that is not this server's.")

    def _is_own_page(self, origin: str, host: Authority) -> bool:
        scheme, separator, rest = origin.partition("://")
        page = read_authority(rest)
        if not separator or page is None or scheme not in _DEFAULT_PORTS:
            return False
        default = _DEFAULT_PORTS[scheme]
        return self._own.holds(page.host) and (page.port or default) == (host.port or default)


class ListedOrigins:
    """Lets the pages of listed origins read answers; every other request is passed on as it is."""

    def __init__(self, app: ASGIApp, *, origins: frozenset[str]) -> None:
        self._app = app
        self._origins = origins
        self._shared = CORSMiddleware(
            app,
            allow_origins=sorted(origins),
            allow_methods=["GET", "POST", "PATCH", "PUT", "DELETE"],
            allow_headers=["*"],
            expose_headers=["*"],
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request; answer the question whether a listed page may send it."""
        is_listed = scope["type"] == "http" and Headers(scope=scope).get("origin") in self._origins
        await (self._shared if is_listed else self._app)(scope, receive, send)


def _ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _short(host: str) -> str:
    return str(_ip_address(host) or host.lower())
