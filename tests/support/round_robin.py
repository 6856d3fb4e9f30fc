"""A proxy that gives each request to the next server, and what it answers back as it comes."""

from collections.abc import AsyncIterator, Sequence
from itertools import count

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_SAFE = {"GET", "HEAD"}
_HOP_BY_HOP = frozenset({b"connection", b"date", b"keep-alive", b"transfer-encoding"})
Headers = list[tuple[bytes, bytes]]


def create_proxy(servers: Sequence[str]) -> Starlette:
    """Return the proxy of servers given by their addresses.

    A request whose server is gone goes to the next one; what changes something is not sent again
    once a server may have read it.
    """
    client = httpx.AsyncClient(timeout=None, trust_env=False)  # turns take their time
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
            return _passed_on(answer)
        return PlainTextResponse("No server is there.", status_code=502)

    return Starlette(routes=[Route("/{path:path}", forward, methods=_METHODS)])


def _target(request: Request) -> str:
    path: bytes = request.scope["raw_path"]
    query: bytes = request.scope["query_string"]
    return (path + (b"?" + query if query else b"")).decode("ascii")


def _has_body(request: Request) -> bool:
    return any(name in request.headers for name in ("content-length", "transfer-encoding"))


def _end_to_end(headers: Headers) -> Headers:
    return [(name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP]


def _passed_on(answer: httpx.Response) -> Response:
    async def body() -> AsyncIterator[bytes]:
        try:
            async for piece in answer.aiter_raw():
                yield piece
        finally:
            await answer.aclose()

    response = StreamingResponse(body(), status_code=answer.status_code)
    response.raw_headers = _end_to_end(answer.headers.raw)
    return response
