"""The demo model as a server: `POST /v1/messages` and `/v1/messages/count_tokens`, on loopback.

`serve_demo` runs it inside the caller's event loop, without touching signals or logging. The agent process reaches it
through `ANTHROPIC_BASE_URL`. It checks no key and calls no other service.
"""

import json
import math
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from gateway.demo.answer import Answer, Broken, Failure, Raw, Reply, Text
from gateway.demo.conversation import read_conversation
from gateway.demo.loopback import cut_connection, run_server
from gateway.demo.model import DemoModel
from gateway.demo.wire import (
    DEMO_MODEL,
    Event,
    answer_body,
    encode_json,
    error_body,
    estimate_tokens,
    stream_answer,
)
from gateway.nesting import bound_depth

DEFAULT_CADENCE_MS = 12

_MAX_DEPTH = 200
"""A call that the model itself nested deeper comes back with the next request, and is cut there."""
_SESSION_HEADER = "x-claude-code-session-id"


def create_demo_app(*, cadence_ms: int = DEFAULT_CADENCE_MS) -> Starlette:
    """Return the demo model as an ASGI application; `cadence_ms` is the pause between streamed chunks."""
    demo = _Demo(cadence_ms)
    return Starlette(
        routes=[
            Route("/v1/messages", demo.answer_messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", demo.count_tokens, methods=["POST"]),
        ],
        exception_handlers={HTTPException: _refuse},
    )


@asynccontextmanager
async def serve_demo(
    host: str = "127.0.0.1", port: int = 0, *, cadence_ms: int = DEFAULT_CADENCE_MS
) -> AsyncIterator[str]:
    """Serve the demo model while the block runs and yield its base URL; port 0 takes a free one.

    Open streams are cut at the end.

    Raises:
        OSError: the port is taken.
    """
    listener = socket.create_server((host, port))
    # asyncio sets this only on sockets it made itself
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    async with run_server(create_demo_app(cadence_ms=cadence_ms), listener):
        yield f"http://{host}:{listener.getsockname()[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A Messages call in progress."""

    request: Request
    body: Mapping[str, object]
    input_tokens: int

    @property
    def is_streaming(self) -> bool:
        return self.body.get("stream") is True

    def stream(self, answer: Answer) -> Iterator[Event]:
        return stream_answer(answer, model=self.model, input_tokens=self.input_tokens)

    @property
    def model(self) -> str:
        return str(self.body.get("model", DEMO_MODEL))


class _Demo:
    """The routes that need the model."""

    def __init__(self, cadence_ms: int) -> None:
        self._cadence_ms = cadence_ms
        self._model = DemoModel()

    async def answer_messages(self, request: Request) -> Response:
        call = await _read_call(request)
        session = request.headers.get(_SESSION_HEADER, "")
        reply = self._model.reply(read_conversation(call.body, session=session))
        if await _client_leaves_within(request, reply.pace.delay_ms / 1000):
            return Response(status_code=204)
        return await self._send(call, reply)

    async def count_tokens(self, request: Request) -> Response:
        call = await _read_call(request)
        return Response(encode_json({"input_tokens": call.input_tokens}))

    async def _send(self, call: _Call, reply: Reply) -> Response:
        match reply:
            case Answer() if call.is_streaming:
                return _stream(self._answer_stream(call, reply))
            case Answer():
                body = answer_body(reply, model=call.model, input_tokens=call.input_tokens)
                return Response(encode_json(body), media_type="application/json")
            case Raw():
                return Response(reply.body, reply.status, media_type=reply.content_type)
            case Broken(after_chars=int()) if call.is_streaming:
                return _stream(self._broken_stream(call, reply))
            case Failure() as failure:
                return _error(failure)
            case Broken(ending=Failure() as failure):
                return _error(failure)
            case Broken(ending="hang"):
                await _client_leaves_within(call.request, math.inf)
            case Broken():
                await cut_connection(call.request)
        return Response(status_code=204)

    async def _answer_stream(self, call: _Call, answer: Answer) -> AsyncIterator[bytes]:
        for event in call.stream(answer):
            yield event.encode()
            if event.is_delta:
                await self._pause(answer.pace.delta_delay_ms)

    async def _broken_stream(self, call: _Call, broken: Broken) -> AsyncIterator[bytes]:
        start = Answer(blocks=(Text(broken.text[: broken.after_chars]),))
        for event in call.stream(start):
            if event.data["type"] == "content_block_stop":
                break
            yield event.encode()
            await self._pause(broken.pace.delta_delay_ms)
        if broken.ending == "drop":
            await cut_connection(call.request)
        elif broken.ending == "hang":
            await anyio.sleep_forever()  # cancelled when the client goes away
        else:
            failure = broken.ending
            yield Event(data=error_body(failure.error_type, failure.message)).encode()

    async def _pause(self, delta_delay_ms: int | None) -> None:
        await anyio.sleep((self._cadence_ms if delta_delay_ms is None else delta_delay_ms) / 1000)


async def _read_call(request: Request) -> _Call:
    try:
        body = json.loads(bound_depth((await request.body()).decode(), _MAX_DEPTH))
    except ValueError as exc:
        raise HTTPException(
            HTTPStatus.BAD_REQUEST, f"The request body is not valid JSON: {exc}"
        ) from exc
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list) or not messages:
        raise HTTPException(HTTPStatus.BAD_REQUEST, "messages: at least one message is required")
    return _Call(
        request=request,
        body=body,
        input_tokens=estimate_tokens([messages, body.get("system", ""), body.get("tools", [])]),
    )


async def _client_leaves_within(request: Request, seconds: float) -> bool:
    """Wait and return True if the client leaves meanwhile; the body must have been read."""
    with anyio.move_on_after(seconds):
        while seconds:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                return True
    return False


async def _refuse(_request: Request, exc: Exception) -> Response:  # noqa: RUF029 - Starlette's shape
    assert isinstance(exc, HTTPException)
    error_type = (
        "invalid_request_error" if exc.status_code == HTTPStatus.BAD_REQUEST else "not_found_error"
    )
    return _error(Failure(status=exc.status_code, error_type=error_type, message=exc.detail))


def _error(failure: Failure) -> Response:
    body = error_body(failure.error_type, failure.message)
    headers = {"request-id": str(body["request_id"])}
    if failure.retry_after_s is not None:
        headers["retry-after"] = f"{failure.retry_after_s:g}"
    return Response(encode_json(body), failure.status, headers, media_type="application/json")


def _stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    headers = {"cache-control": "no-cache"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)
