"""One bounded request: the connection goes to a checked address, and the answer has a limit.

The name is resolved here, every address of it is checked, and the connection is made to an address
that was checked, so that a name cannot lead elsewhere in between. TLS is verified for the name.
"""

import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import anyio
import httpx

from gateway.relay.upstream import tls_context
from gateway.version import VERSION
from gateway.web_fetch.errors import FetchRefused
from policies.web import is_public_address

_MOST_ADDRESSES: Final = 3
_CONNECT_S: Final = 10.0
_TYPES: Final = "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9"

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


async def resolve(host: str, port: int) -> Sequence[Place]:
    """Ask the system for a name."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(str(place[0]), int(place[1])) for *_, place in found]


@cache
def _trusted() -> ssl.SSLContext:
    return tls_context({})


class Exchange:
    """Sends requests to public addresses."""

    def __init__(
        self,
        *,
        resolve: Resolve = resolve,
        is_allowed: IsAllowed = is_public_address,
        trusted: Callable[[], ssl.SSLContext] = _trusted,
    ) -> None:
        self._resolve = resolve
        self._is_allowed = is_allowed
        self._trusted = trusted

    async def get(self, url: str, host: str, *, max_bytes: int) -> Reply:
        """Return the answer of an address that the policy allowed; `host` is its name in ASCII.

        Follows no redirect, sends no cookie, uses no proxy. Raise `FetchRefused`.
        """
        parsed = httpx.URL(url)
        places = await self._places(host, 443 if parsed.scheme == "https" else 80)
        context = await anyio.to_thread.run_sync(self._trusted)  # reads certificates, once
        for address, port in places[:_MOST_ADDRESSES]:
            with contextlib.suppress(httpx.ConnectError, httpx.ConnectTimeout):
                return await self._send(parsed, host, address, port, context, max_bytes)
        raise FetchRefused(f"{host} cannot be reached.")

    async def _places(self, host: str, port: int) -> Sequence[Place]:
        try:
            places = await self._resolve(host, port)
        except OSError as exc:
            raise FetchRefused(f"The host {host} is not found.") from exc
        if not places or not all(self._is_allowed(address) for address, _ in places):
            raise FetchRefused(f"The host {host} leads to an address that is not public.")
        return places

    async def _send(
        self,
        url: httpx.URL,
        host: str,
        address: str,
        port: int,
        context: ssl.SSLContext,
        max_bytes: int,
    ) -> Reply:
        transport = httpx.AsyncHTTPTransport(verify=context, trust_env=False)
        headers = {
            "Host": host,
            "Accept": _TYPES,
            "Accept-Encoding": "identity",
            "User-Agent": f"candor/{VERSION}",
        }
        async with httpx.AsyncClient(
            transport=transport, timeout=_CONNECT_S, trust_env=False
        ) as client:
            request = client.build_request(
                "GET",
                url.copy_with(host=address, port=port, fragment=None),
                headers=headers,
                extensions={"sni_hostname": host},
            )
            response = await client.send(request, stream=True)
            try:
                return await _read(response, max_bytes)
            finally:
                await response.aclose()


async def _read(response: httpx.Response, max_bytes: int) -> Reply:
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
