"""Events as a stream: what is stored goes out at once, in order; silence is filled with comments.

A stream is no generator but one ASGI response with three small tasks: one sends, one notices that
the client has gone, one that the server stops. Ending the response leaves the subscription, whatever
ended it, and never touches the turn.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.conversations.feed import Subscription
from gateway.conversations.model import COMPLETED, TurnEvent
from gateway.errors import GatewayError, NotFound, ShuttingDown, Unauthorized
from gateway.http.exception_handlers import error_body, to_gateway_error
from gateway.jsonsafe import json_text

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_KEEP_ALIVE = b": keep-alive\n\n"
_CHECK_EVERY_S = 1.0
"""Events of other turns wake a reader of one turn; whether its conversation is gone, the one other
reason to wake it for nothing, is asked no more often than this."""
_RETRY_AFTER_S = 5
_PIECE_CHARS = 16_384


class Readers:
    """How many streams are open."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Count a stream while it is open."""
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlan:
    """How a stream goes on and ends."""

    subscription: Subscription
    until_completed: bool
    """End after the first `turn.completed`; else never by itself."""
    check: Callable[[], Awaitable[object]]
    """Raises `NotFound` when the conversation is gone."""
    wait_stopped: Callable[[], Awaitable[None]]
    """Returns when the server goes down and no turn runs any more."""
    wait_revoked: Callable[[], Awaitable[None]]
    """Returns when the reader's token is no longer known."""
    keep_alive_s: float
    readers: Readers
    request_id: str


class EventStream(Response):
    """The response that follows a subscription."""

    media_type = "text/event-stream"

    def __init__(self, plan: StreamPlan) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._plan = plan
        self._waiting: anyio.CancelScope | None = None
        self._stopped = False
        self._revoked = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the stream until it ends, the client goes or the server stops."""
        with self._plan.readers.one_more():
            await self._serve(receive, send)

    async def _serve(self, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_client, receive, tasks.cancel_scope)
            tasks.start_soon(self._watch_server)
            tasks.start_soon(self._watch_token)
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._stream(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            tasks.cancel_scope.cancel()

    async def _watch_client(self, receive: Receive, everything: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        everything.cancel()

    async def _watch_server(self) -> None:
        await self._plan.wait_stopped()
        self._stopped = True
        self._stop_waiting()

    async def _watch_token(self) -> None:
        await self._plan.wait_revoked()
        self._revoked = True
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()

    async def _stream(self, send: Send) -> None:
        try:
            async with self._plan.subscription:
                await self._follow(send)
        except Exception as exc:  # noqa: BLE001  the edge of a stream: logged by `to_gateway_error`, told
            fault = to_gateway_error(exc, self._plan.request_id)
            await _send(send, error_event(fault, self._plan.request_id))

    async def _follow(self, send: Send) -> None:
        plan = self._plan
        rhythm = _Rhythm(plan.keep_alive_s)
        while True:
            stopped = self._stopped
            events = await self._next(0 if stopped or self._revoked else rhythm.wait_s)
            if self._revoked:
                raise Unauthorized("The token of this stream is no longer valid.")
            if events:
                for piece in stream_pieces(events):
                    await _send(send, piece)
                rhythm.sent()
                if plan.until_completed and any(one.type == COMPLETED for one in events):
                    return
            elif stopped:
                raise ShuttingDown(
                    "The server is shutting down; come back with the id of the last event.",
                    retry_after_s=_RETRY_AFTER_S,
                )
            else:
                await self._mind_silence(send, rhythm)

    async def _next(self, wait_s: float) -> Sequence[TurnEvent]:
        with anyio.CancelScope() as self._waiting:
            return await self._plan.subscription.next(wait_s)
        return []

    async def _mind_silence(self, send: Send, rhythm: "_Rhythm") -> None:
        if rhythm.is_check_due():
            try:
                await self._plan.check()
            except NotFound:
                raise NotFound(
                    "This conversation was deleted.", code="conversation_deleted"
                ) from None
        if rhythm.is_keep_alive_due():
            await _send(send, _KEEP_ALIVE)


class _Rhythm:
    """When a silent stream must look whether its conversation is still there, and say something."""

    def __init__(self, keep_alive_s: float) -> None:
        self._keep_alive_s = keep_alive_s
        self._sent_at = anyio.current_time()
        self._check_from = self._sent_at
        self._is_unsure = False

    @property
    def wait_s(self) -> float:
        """How long nothing needs to be done."""
        due = self._sent_at + self._keep_alive_s
        if self._is_unsure:
            due = min(due, self._check_from)
        return max(0.0, due - anyio.current_time())

    def sent(self) -> None:
        """Note that the client was just sent something."""
        self._sent_at = anyio.current_time()

    def is_check_due(self) -> bool:
        """Whether to look now; if not, it is due soon."""
        now = anyio.current_time()
        self._is_unsure = now < self._check_from
        if not self._is_unsure:
            self._check_from = now + _CHECK_EVERY_S
        return not self._is_unsure

    def is_keep_alive_due(self) -> bool:
        """Whether the client has heard nothing for long; counts as sent then."""
        now = anyio.current_time()
        if now < self._sent_at + self._keep_alive_s:
            return False
        self._sent_at = now
        return True


def stream_pieces(events: Iterable[TurnEvent]) -> Iterator[bytes]:
    """Write events in pieces of bounded size; the data of each is one line of JSON already.

    The server waits after each piece until the client has read enough, so no more than a piece is
    held for a client that does not read.
    """
    text = ""
    for event in events:
        text += f"id: {event.id}\nevent: {event.type}\ndata: "
        for at in range(0, len(event.data), _PIECE_CHARS):
            text += event.data[at : at + _PIECE_CHARS]
            if len(text) >= _PIECE_CHARS:
                yield text.encode()
                text = ""
        text += "\n\n"
    yield text.encode()


def error_event(fault: GatewayError, request_id: str) -> bytes:
    """Write the one error shape as an event; it has no id, so resuming goes on before it."""
    return f"event: error\ndata: {json_text(error_body(fault, request_id))}\n\n".encode()


async def _send(send: Send, chunk: bytes) -> None:
    await send({"type": "http.response.body", "body": chunk, "more_body": True})
