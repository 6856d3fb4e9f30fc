"""Limits on client connections: how long one may be idle, and how many there may be.

Uvicorn limits only the pause between two requests. Here a client that sends no complete request, or
does not read its answer, is disconnected after `patience_s`. At the limit of connections the one
that has been idle longest is closed for the new one. Malformed HTTP is answered in the one error
shape.

Uvicorn has no public hook for its answer to malformed HTTP, so `Connection` extends uvicorn's
HTTP/1.1 protocol instead of wrapping it. Besides asyncio's own callbacks it uses
`send_400_response`, `transport` and `conn`.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar, Literal

import h11
import psutil
import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from gateway.errors import GatewayError, Overloaded
from gateway.http.exception_handlers import RETRY_AFTER_S, MalformedRequest, error_response
from gateway.http.middleware import PROTECTION
from gateway.ids import new_request_id

SEND_BUFFER_BYTES = 65_536
"""Of the kernel, for each connection; unset, it grows to megabytes for a client that does not
read."""
MAX_HEADERS = 200
"""Of a request. Each is looked at several times on the loop; browsers send some thirty."""
_MAX_CONNECTIONS = 800
_MAX_AT_ONCE = 40
_CONNECTIONS_SHARE = 1 / 2
"""Of the free descriptors; the rest is for agents, databases and files."""
_ACCEPT_SHARE = 1 / 16
"""Of that rest: so many are accepted in each round of the loop, and it takes four rounds to close
others."""
_UVICORN_KEEP_ALIVE_S = 3600
"""Never reached: `patience_s` is shorter."""

DropReason = Literal["idle", "slow_reader", "room", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The limits of all connections."""

    patience_s: float = 20.0
    """For a client to send a complete request, or to read a part of what waits for it."""
    max_connections: int = _MAX_CONNECTIONS
    accept_at_once: int = _MAX_AT_ONCE


def limits_from_system() -> ConnectionLimits:
    """Return limits that leave enough file descriptors for the rest of the server."""
    try:
        process = psutil.Process()
        limit = process.rlimit(psutil.RLIMIT_NOFILE)[0]
        free = limit - process.num_fds()
    except (AttributeError, OSError, psutil.Error):  # only Linux and FreeBSD report the limit
        return ConnectionLimits()
    if limit == psutil.RLIM_INFINITY:
        return ConnectionLimits()
    connections = min(_MAX_CONNECTIONS, max(1, int(free * _CONNECTIONS_SHARE)))
    at_once = max(1, int((free - connections) * _ACCEPT_SHARE))
    return ConnectionLimits(max_connections=connections, accept_at_once=min(_MAX_AT_ONCE, at_once))


class Connections:
    """All connections of a server."""

    def __init__(
        self,
        limits: ConnectionLimits | None = None,
        on_drop: Callable[[DropReason], None] = lambda _: None,
    ) -> None:
        self.limits = limits or ConnectionLimits()
        self.on_drop = on_drop
        self.open: set[Connection] = set()
        self.idle: dict[Connection, None] = {}
        """Those that serve no request, the longest idle first."""

    @property
    def buffered_bytes(self) -> int:
        """How much was written that clients have not taken yet, without the kernel's buffers."""
        return sum(connection.buffered_bytes for connection in self.open)

    def server_config(self, app: ASGIApp, *, drain_s: int | None = None) -> uvicorn.Config:
        """Return uvicorn's configuration for `app`; at the end open connections get `drain_s`."""

        class LimitedConnection(Connection):
            shared = self

        async def count_requests(scope: Scope, receive: Receive, send: Send) -> None:
            connection: Connection = scope["state"]["wire"]
            connection.change_serving(1)
            served = app if len(scope["headers"]) <= MAX_HEADERS else _refuse_headers
            try:
                await served(scope, receive, send)
            finally:
                connection.change_serving(-1)

        return uvicorn.Config(
            count_requests,
            http=LimitedConnection,
            ws="none",  # no route takes one, so nothing parses it
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # any local process could claim another address with them
            timeout_graceful_shutdown=drain_s,
            timeout_keep_alive=_UVICORN_KEEP_ALIVE_S,
            backlog=self.limits.accept_at_once,
        )


class Connection(H11Protocol):
    """One HTTP/1.1 connection."""

    shared: ClassVar[Connections]

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: Any,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        state = {**app_state, "wire": self, "connection": {}}
        super().__init__(config, server_state, state, _loop)
        self._serving = 0
        self._is_paused = False
        self._unread = 0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Accept the connection, closing an idle one at the limit; refuse it if none is idle."""
        super().connection_made(transport)
        if len(self.shared.open) >= self.shared.limits.max_connections:
            longest_idle = next(iter(self.shared.idle), None)
            if longest_idle is None:
                self.shared.on_drop("full")
                self._refuse(
                    Overloaded(
                        "Too many connections are open; try again in a moment.",
                        retry_after_s=RETRY_AFTER_S,
                    )
                )
                return
            longest_idle.drop("room")
        self.shared.open.add(self)
        self._await_client()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything."""
        self._forget()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the deadline of a client that does not read."""
        super().pause_writing()
        self._is_paused = True
        self._await_client()

    def resume_writing(self) -> None:
        """Continue writing."""
        super().resume_writing()
        self._is_paused = False
        self._await_client()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  uvicorn's own sentence
        """Answer malformed HTTP."""
        self._refuse(MalformedRequest("This request cannot be read as HTTP/1.1."))

    @property
    def buffered_bytes(self) -> int:
        """How much waits for the client to read."""
        return self.transport.get_write_buffer_size()

    def change_serving(self, by: int) -> None:
        """Count the requests being served: for a moment two, when they are pipelined."""
        self._serving += by
        self._await_client()

    def drop(self, reason: DropReason) -> None:
        """Abort the connection."""
        self.shared.on_drop(reason)
        self._forget()
        self.transport.abort()

    def _await_client(self) -> None:
        """Set a deadline if the client has to act next."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self.shared.idle.pop(self, None)
        if self not in self.shared.open:
            return
        if not self._serving:
            self.shared.idle[self] = None
        if self._is_paused or not self._serving:
            self._unread = self.buffered_bytes
            patience_s = self.shared.limits.patience_s
            self._deadline = self.loop.call_later(patience_s, self._check_client)

    def _check_client(self) -> None:
        unread = self.buffered_bytes
        if 0 < unread < self._unread:
            self._await_client()
        else:
            self.drop("slow_reader" if unread else "idle")

    def _forget(self) -> None:
        self.shared.open.discard(self)
        self._await_client()

    def _refuse(self, error: GatewayError) -> None:
        """Answer outside of a request, and close; once an answer has begun, only close."""
        self._forget()
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.write(_response_bytes(error))
            self.transport.close()
        else:
            self.transport.abort()


async def _refuse_headers(scope: Scope, receive: Receive, send: Send) -> None:
    told = f"A request may have at most {MAX_HEADERS} headers."
    await _response(MalformedRequest(told))(scope, receive, send)


def _response(error: GatewayError) -> Response:
    """Return the answer to a request that no part of the application has seen."""
    request_id = new_request_id()
    headers = {**PROTECTION, "Connection": "close", "Cache-Control": "no-store"}
    return error_response(error, request_id, {**headers, "X-Request-ID": request_id})


def _response_bytes(error: GatewayError) -> bytes:
    response = _response(error)
    status = HTTPStatus(response.status_code)
    lines = [b"HTTP/1.1 %d %s" % (status, status.phrase.encode())]
    lines += [b"%s: %s" % header for header in response.raw_headers]
    return b"\r\n".join([*lines, b"", bytes(response.body)])
