"""One bounded request: the connection goes to a checked address, and the answer has a limit.

The name is resolved here, every address of it is checked, and the connection is made to an address
that was checked, so that a name cannot lead elsewhere in between. TLS is verified for the name.
"""

import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, TypeVar

import anyio
import httpx

from gateway.relay.upstream import tls_context
from gateway.version import VERSION
from gateway.web_fetch.errors import FetchRefused
from policies.web import is_public_address

_MOST_ADDRESSES: Final = 3
_MOST_LOOKUPS: Final = 64
_CONNECT_S: Final = 10.0
_PORTS: Final = {"http": 80, "https": 443}
_TYPES: Final = "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9"

T = TypeVar("T")
Place = tuple[str, int]
"""An IP address and a port."""
Resolve = Callable[[str, int], Awaitable[Sequence[Place]]]
"""Returns the places behind a name and a port. Raise `OSError` if there is no such name."""
IsAllowed = Callable[[str], bool]
"""Returns whether a connection may go to an IP address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer, read up to a limit."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_whole: bool


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request."""

    method: str
    url: httpx.URL
    host: str
    headers: Mapping[str, str]
    content: bytes | None = None

    @property
    def port(self) -> int:
        return self.url.port or _PORTS[self.url.scheme]

    def all_headers(self) -> dict[str, str]:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return {
            "Host": name if self.url.port is None else f"{name}:{self.url.port}",
            "Accept-Encoding": "identity",
            "User-Agent": f"candor/{VERSION}",
            **self.headers,
        }


@cache
def _trusted() -> ssl.SSLContext:
    return tls_context({})


class Exchange:
    """Sends requests to public addresses, or to those that `is_allowed` takes."""

    def __init__(
        self,
        *,
        resolve: Resolve | None = None,
        is_allowed: IsAllowed = is_public_address,
        trusted: Callable[[], ssl.SSLContext] = _trusted,
    ) -> None:
        self._resolve = resolve or self._look_up
        self._lookups = anyio.CapacityLimiter(_MOST_LOOKUPS)
        self._is_allowed = is_allowed
        self._trusted = trusted

    async def get(self, url: str, host: str, *, max_bytes: int) -> Reply:
        """Return the answer of an address that the policy allowed; `host` is its name in ASCII.

        Follows no redirect, sends no cookie, uses no proxy. Raise `FetchRefused`.
        """
        asked = _Asked("GET", httpx.URL(url), host, {"Accept": _TYPES})
        return await self._ask(asked, partial(_read, max_bytes=max_bytes))

    async def post(self, url: str, host: str, content: bytes, headers: Mapping[str, str]) -> int:
        """Send a body as `get` asks; return the status. The answer's body is not read.

        Raise `FetchRefused`.
        """
        return await self._ask(_Asked("POST", httpx.URL(url), host, headers, content), _status)

    async def _ask(self, asked: _Asked, read: Callable[[httpx.Response], Awaitable[T]]) -> T:
        places = await self._places(asked.host, asked.port)
        context = await anyio.to_thread.run_sync(self._trusted)  # reads certificates, once
        for place in places[:_MOST_ADDRESSES]:
            with contextlib.suppress(httpx.ConnectError, httpx.ConnectTimeout):
                return await _send(asked, place, context, read)
        raise FetchRefused(f"{asked.host} cannot be reached.")

    async def _look_up(self, host: str, port: int) -> Sequence[Place]:
        """Ask the system for a name, in a thread that is left behind if it is slow.

        The loop's own few threads for that would be taken by names whose servers do not answer.
        """
        found = await anyio.to_thread.run_sync(
            partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM),
            abandon_on_cancel=True,
            limiter=self._lookups,
        )
        return [(str(place[0]), int(place[1])) for *_, place in found]

    async def _places(self, host: str, port: int) -> Sequence[Place]:
        try:
            places = await self._resolve(host, port)
        except OSError as exc:
            raise FetchRefused(f"The host {host} is not found.") from exc
        if not places or not all(self._is_allowed(address) for address, _ in places):
            raise FetchRefused(f"The host {host} leads to an address that is not public.")
        return places


async def _send(
    asked: _Asked,
    place: Place,
    context: ssl.SSLContext,
    read: Callable[[httpx.Response], Awaitable[T]],
) -> T:
    address, port = place
    transport = httpx.AsyncHTTPTransport(verify=context, trust_env=False)
    async with httpx.AsyncClient(
        transport=transport, timeout=_CONNECT_S, trust_env=False
    ) as client:
        request = client.build_request(
            asked.method,
            asked.url.copy_with(host=address, port=port, fragment=None),
            headers=asked.all_headers(),
            content=asked.content,
            extensions={"sni_hostname": asked.host},
        )
        response = await client.send(request, stream=True)
        try:
            return await read(response)
        finally:
            await response.aclose()


async def _status(response: httpx.Response) -> int:  # noqa: RUF029  as `_read`
    return response.status_code


async def _read(response: httpx.Response, *, max_bytes: int) -> Reply:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise FetchRefused("The answer is compressed, which was not asked for.")
    body, is_whole = bytearray(), True
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > max_bytes:
            is_whole = False
            break
    return Reply(
        status=response.status_code,
        headers=response.headers,
        body=bytes(body[:max_bytes]),
        is_whole=is_whole,
    )
