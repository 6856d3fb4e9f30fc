"""The connection itself: what a client may do to it before, between and after its requests.

Uvicorn bounds the pause after an answer and nothing else: a client that never finishes a request's head,
or feeds a body that nobody reads any more byte by byte, would hold its connection for ever. Here each of
these has a deadline, and the number of connections a bound: at the bound the one that has waited longest
without a request makes room. What is no HTTP is answered in the one error shape, too.
"""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from gateway.errors import GatewayError, Overloaded
from gateway.http.answers import JsonAnswer
from gateway.http.edge import PROTECTION
from gateway.http.faults import HeadTimeout, MalformedRequest, error_answer
from gateway.http.peers import Connection
from gateway.ids import new_request_id

_KEEP_ALIVE_S = 30
_RETRY_AFTER_S = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WireLimits:
    """How long a connection may do nothing useful, and how many there may be."""

    head_deadline_s: float = 15.0
    """For the head of a request, from the connection's beginning or the head's first byte on."""
    rest_deadline_s: float = 15.0
    """For what is left of a body after the answer to it was sent."""
    max_connections: int = 800
    """Most systems give a program 1024 open files; the agents and the database need some, too."""


def server_config(
    app: ASGIApp, limits: WireLimits | None = None, *, drain_s: int | None = None
) -> uvicorn.Config:
    """Say how uvicorn is to serve; connections still open get `drain_s` at the end."""
    return uvicorn.Config(
        app,
        http=_wire_of(limits or WireLimits()),
        ws="none",  # there is no route for one, so nothing parses it
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # else any local process could say that it is somebody else
        timeout_graceful_shutdown=drain_s,
        timeout_keep_alive=_KEEP_ALIVE_S,
    )


def _wire_of(chosen: WireLimits) -> type[asyncio.Protocol]:
    class LimitedWire(Wire):
        limits = chosen

    return LimitedWire


class Wire(H11Protocol):
    """One connection of HTTP/1.1."""

    limits: ClassVar[WireLimits] = WireLimits()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._heard = False
        """Whether a byte has come."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Take the connection, or make room for it, or turn it away."""
        super().connection_made(transport)
        known = Connection(self.client, _numbered(self.server))
        self.app_state = {**self.app_state, "connection": known}
        self._mind_waiting()
        if len(self.connections) > self.limits.max_connections:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        self._heard = True
        super().data_received(data)
        self._mind_waiting()

    def on_response_complete(self) -> None:
        """Go on after an answer."""
        super().on_response_complete()
        self._mind_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of everything."""
        self._disarm()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP; uvicorn calls this. `msg` is its own and says nothing."""
        del msg
        self._refuse(MalformedRequest("This is no request that can be read as HTTP/1.1."))

    def _should_upgrade(self) -> bool:
        return False

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being served here."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    @property
    def is_open(self) -> bool:
        """Whether it is not being closed yet."""
        return not self.transport.is_closing()

    @property
    def waits_until(self) -> float:
        """When the waiting ends, in the loop's time; the earliest has waited longest."""
        timer = self._deadline or self.timeout_keep_alive_task
        return 0.0 if timer is None else timer.when()

    def _mind_waiting(self) -> None:
        """Hold a deadline while a client is awaited, but in the pause that uvicorn bounds itself."""
        paused = self.timeout_keep_alive_task is not None
        if not self.is_waiting or paused or self.transport.is_closing():
            self._disarm()
        elif self._deadline is None:
            rest = self.conn.their_state is h11.SEND_BODY
            within = self.limits.rest_deadline_s if rest else self.limits.head_deadline_s
            self._deadline = self.loop.call_later(within, self._too_late)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        if self.transport.is_closing() or not self.is_waiting:
            return
        if self._heard and self.conn.our_state is h11.IDLE:
            self._refuse(HeadTimeout("The head of the request did not arrive in time."))
        else:
            self.transport.abort()

    def _make_room(self) -> None:
        waiting = [
            one
            for one in self.connections
            if isinstance(one, Wire) and one is not self and one.is_waiting and one.is_open
        ]
        if waiting:
            min(waiting, key=lambda one: one.waits_until).transport.abort()
        else:
            self._refuse(
                Overloaded(
                    "Too many connections are open; try again in a moment.",
                    retry_after_s=_RETRY_AFTER_S,
                )
            )

    def _refuse(self, fault: GatewayError) -> None:
        """Answer outside of any request, and close; after an answer has begun, only close."""
        self._disarm()
        if not self.is_waiting:
            self.cycle.disconnected = True  # whatever is being made there goes nowhere now
            self.cycle.message_event.set()
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.abort()
            return
        for event in _events_of(fault):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def _events_of(fault: GatewayError) -> list[h11.Event]:
    request_id = new_request_id()
    answer: JsonAnswer = error_answer(fault, request_id, {**PROTECTION, "Connection": "close"})
    headers = [
        *answer.raw_headers,
        (b"x-request-id", request_id.encode()),
        (b"cache-control", b"no-store"),
    ]
    reason = HTTPStatus(answer.status_code).phrase.encode()
    return [
        h11.Response(status_code=answer.status_code, headers=headers, reason=reason),
        h11.Data(data=bytes(answer.body)),
        h11.EndOfMessage(),
    ]


def _numbered(server: tuple[str, int | None] | None) -> tuple[str, int] | None:
    return None if server is None or server[1] is None else (server[0], server[1])
