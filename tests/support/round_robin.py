"""A proxy that gives each request to the next server, and what it answers back as it comes."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count

import anyio
import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_SAFE = {"GET", "HEAD"}
_HOP_BY_HOP = frozenset({b"connection", b"date", b"keep-alive", b"transfer-encoding"})
Headers = list[tuple[bytes, bytes]]


@asynccontextmanager
async def round_robin(servers: Sequence[str]) -> AsyncIterator[Starlette]:
    """Give the proxy of servers named by their addresses.

    A request whose server is gone goes to the next one; what changes something is not sent again
    once a server may have read it.
    """
    # turns take their time
    async with httpx.AsyncClient(timeout=None, trust_env=False) as client:
        yield Starlette(routes=[Route("/{path:path}", _forward(client, servers), methods=_METHODS)])


def _forward(
    client: httpx.AsyncClient, servers: Sequence[str]
) -> Callable[[Request], Awaitable[Response]]:
    turns = count()

    async def forward(request: Request) -> Response:
        first = next(turns)
        for step in range(len(servers)):
            server = servers[(first + step) % len(servers)]
            outgoing = client.build_request(
                request.method,
                httpx.URL(server + _target(request)),
                headers=_end_to_end(request.headers.raw),
                content=request.stream() if _has_body(request) else None,
            )
            try:
                answer = await client.send(outgoing, stream=True)
            except httpx.TransportError as exc:
                if isinstance(exc, httpx.ConnectError) or request.method in _SAFE:
                    continue
                return PlainTextResponse("The server ended.", status_code=502)
            return _PassedOn(answer)
        return PlainTextResponse("No server is there.", status_code=502)

    return forward


def _target(request: Request) -> str:
    path: bytes = request.scope["raw_path"]
    query: bytes = request.scope["query_string"]
    return (path + (b"?" + query if query else b"")).decode("ascii")


def _has_body(request: Request) -> bool:
    return any(name in request.headers for name in ("content-length", "transfer-encoding"))


def _end_to_end(headers: Headers) -> Headers:
    return [(name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP]


class _PassedOn(StreamingResponse):
    """The answer of a server; its connection is given back whatever becomes of the client."""

    def __init__(self, answer: httpx.Response) -> None:
        super().__init__(answer.aiter_raw(), status_code=answer.status_code)
        self.raw_headers = _end_to_end(answer.headers.raw)
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await self._answer.aclose()
