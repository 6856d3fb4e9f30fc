"""Event streams: stored events are sent at once and in order, comments fill the silence.

A stream is one ASGI response with four tasks: one sends, the others wait for the client to leave,
the server to stop and the token to be revoked. Its end closes the subscription and never touches
the turn.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from math import inf

import anyio
from prometheus_client import Gauge
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.conversations.feed import Subscription
from gateway.conversations.model import COMPLETED, TurnEvent
from gateway.errors import GatewayError, NotFound, ShuttingDown, Unauthorized
from gateway.http.exception_handlers import RETRY_AFTER_S, storage_error, to_gateway_error
from gateway.jsonsafe import json_text
from memory.errors import StoreUnavailable

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_KEEP_ALIVE = b": keep-alive\n\n"
_CHECK_EVERY_S = 1.0
"""A reader of one turn also wakes at events of others; the check for a deleted conversation is
limited."""
_PIECE_CHARS = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlan:
    """How a stream goes on and ends."""

    subscription: Subscription
    until_completed: bool
    """End after the first `turn.completed`; otherwise the stream goes on."""
    check: Callable[[], Awaitable[object]]
    """Raises `NotFound` if the conversation was deleted."""
    wait_stopped: Callable[[], Awaitable[None]]
    """Returns when the server shuts down and no turn runs any more."""
    wait_revoked: Callable[[], Awaitable[None]]
    """Returns when the reader's token is no longer valid. Raises `StoreUnavailable` if that cannot
    be looked up.
    """
    keep_alive_s: float
    request_id: str
    prepare: Callable[[Sequence[TurnEvent]], Awaitable[None]] | None = None
    """Called with events before `pieces`, to load what that needs."""
    pieces: Callable[[Sequence[TurnEvent]], Iterable[bytes]] | None = None
    """Writes the events of another protocol; None: as they are."""
    is_over: Callable[[], bool] | None = None
    """Tells whether `pieces` has ended the stream, though the turn goes on."""
    failure: Callable[[GatewayError, str], bytes] | None = None
    """Writes an error of another protocol, which ends the stream."""
    while_open: AbstractContextManager[None] = field(default_factory=nullcontext)
    """Entered while the stream is open."""
    on_left: Callable[[], Awaitable[None]] | None = None
    """Called when the client has left before the end."""
    headers: Mapping[str, str] = field(default_factory=dict)


class EventStream(Response):
    """The response that follows a subscription; `readers` counts the open ones."""

    media_type = "text/event-stream"

    def __init__(self, plan: StreamPlan, readers: Gauge) -> None:
        super().__init__(headers={**plan.headers, **_HEADERS})
        del self.headers["content-length"]
        self._plan = plan
        self._readers = readers
        self._stopped = anyio.Event()
        self._refusal: GatewayError | None = None
        """Why the reader may no longer read."""
        self._has_left = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the stream until it ends, the client leaves or the server stops."""
        with self._readers.track_inprogress(), self._plan.while_open:
            await self._serve(receive, send)
        if self._has_left and self._plan.on_left is not None and not self._is_over():
            await self._plan.on_left()

    def _is_over(self) -> bool:
        """Return whether `pieces` has ended the stream: a client may close it at once then."""
        return self._plan.is_over is not None and self._plan.is_over()

    async def _serve(self, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_client, receive, tasks.cancel_scope)
            tasks.start_soon(self._watch_shutdown)
            tasks.start_soon(self._watch_token)
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._stream(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            tasks.cancel_scope.cancel()

    async def _watch_client(self, receive: Receive, everything: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._has_left = True
        everything.cancel()

    async def _watch_shutdown(self) -> None:
        await self._plan.wait_stopped()
        self._stopped.set()
        self._plan.subscription.wake()

    async def _watch_token(self) -> None:
        try:
            await self._plan.wait_revoked()
        except StoreUnavailable as exc:
            self._refusal = storage_error(exc)
        else:
            self._refusal = Unauthorized("The token of this stream is no longer valid.")
        self._plan.subscription.wake()

    async def _stream(self, send: Send) -> None:
        try:
            async with self._plan.subscription:
                await self._follow(send)
        except Exception as exc:  # noqa: BLE001  reported as an event and logged, like any request's failure
            error = to_gateway_error(exc, self._plan.request_id)
            write = self._plan.failure or error_event
            await _send(send, write(error, self._plan.request_id))

    async def _follow(self, send: Send) -> None:
        plan = self._plan
        clock = asyncio.get_running_loop().time
        now = clock()
        keep_alive_at, check_at, checked_at = now + plan.keep_alive_s, inf, -inf
        while True:
            stopped = self._stopped.is_set()
            wait_s = 0 if stopped or self._refusal else min(keep_alive_at, check_at) - now
            events = await plan.subscription.next(max(0, wait_s))
            now = clock()
            if self._refusal is not None:
                raise self._refusal
            if events:
                if await self._write(send, events):
                    return
                now = clock()
                keep_alive_at = now + plan.keep_alive_s
                continue
            if stopped:
                raise ShuttingDown(
                    "The server is shutting down; come back with the id of the last event.",
                    retry_after_s=RETRY_AFTER_S,
                )
            check_at = checked_at + _CHECK_EVERY_S
            if now >= check_at:
                await self._check_conversation()
                checked_at, check_at = now, inf
            if now >= keep_alive_at:
                await _send(send, _KEEP_ALIVE)
                keep_alive_at = now + plan.keep_alive_s

    async def _write(self, send: Send, events: Sequence[TurnEvent]) -> bool:
        """Send events; return whether the stream ends with them."""
        plan, pieces = self._plan, self._plan.pieces or stream_pieces
        if plan.prepare is not None:
            await plan.prepare(events)
        for piece in pieces(events):
            await _send(send, piece)
        is_completed = any(event.type == COMPLETED for event in events)
        return (plan.until_completed and is_completed) or self._is_over()

    async def _check_conversation(self) -> None:
        try:
            await self._plan.check()
        except NotFound:
            raise NotFound("This conversation was deleted.", code="conversation_deleted") from None


def stream_pieces(events: Iterable[TurnEvent]) -> Iterator[bytes]:
    """Yield events as the text of a stream, in pieces of bounded size.

    The server waits after each piece until the client has read enough, so at most one piece is held
    for a client that does not read. The data of an event is one line of JSON.
    """
    text = ""
    for event in events:
        place = f"id: {event.id}\n" if event.n else ""  # a client resumes after the event before
        text += f"{place}event: {event.type}\ndata: "
        for at in range(0, len(event.data), _PIECE_CHARS):
            text += event.data[at : at + _PIECE_CHARS]
            if len(text) >= _PIECE_CHARS:
                yield text.encode()
                text = ""
        text += "\n\n"
    yield text.encode()


def error_event(error: GatewayError, request_id: str) -> bytes:
    """Return an error as an event. It has no id, so a client resumes after the last event."""
    return f"event: error\ndata: {json_text(error.body(request_id))}\n\n".encode()


async def _send(send: Send, chunk: bytes) -> None:
    await send({"type": "http.response.body", "body": chunk, "more_body": True})
