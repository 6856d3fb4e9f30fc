"""The demo model as a server: `POST /v1/messages` and its neighbours, on loopback.

`serve_demo` runs it inside the caller's event loop, on a free port, without touching signals or logging. The real agent process reaches it
through `ANTHROPIC_BASE_URL`. It needs no key, checks none, and never calls anything else.
"""

import json
import math
import socket
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from gateway.demo.answer import Answer, Broken, Failure, Raw, Reply
from gateway.demo.conversation import read_conversation
from gateway.demo.loopback import cut_connection, run_server
from gateway.demo.model import DemoModel
from gateway.demo.wire import (
    DEMO_MODEL,
    Event,
    NewId,
    answer_body,
    encode_json,
    error_body,
    estimate_tokens,
    message_start,
    model_body,
    models_body,
    stream_answer,
    stream_text_deltas,
    stream_text_start,
)
from gateway.nesting import bound_depth

DEFAULT_CADENCE_MS = 12

_MAX_DEPTH = 200
"""A call that the model itself nested deeper comes back with the next request, and is cut there."""
_SESSION_HEADER = "x-claude-code-session-id"
_GREETING = (
    f"{DEMO_MODEL}: a scripted stand-in for the Messages API. POST /v1/messages to talk to it.\n"
)


def create_demo_app(
    *, cadence_ms: int = DEFAULT_CADENCE_MS, new_id: NewId | None = None
) -> Starlette:
    """The demo model as an ASGI application; `cadence_ms` is the pause between streamed chunks, 0 for none."""
    demo = _Demo(cadence_ms=cadence_ms, new_id=new_id or _random_id)
    return Starlette(
        routes=[
            Route("/", _greet, methods=["GET", "HEAD"]),
            Route("/v1/models", _list_models, methods=["GET", "HEAD"]),
            Route("/v1/models/{model_id}", _show_model, methods=["GET", "HEAD"]),
            Route("/v1/messages", demo.answer_messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", demo.count_tokens, methods=["POST"]),
        ],
        exception_handlers={404: demo.refuse_path, 405: demo.refuse_path},
    )


@asynccontextmanager
async def serve_demo(
    host: str = "127.0.0.1", port: int = 0, *, cadence_ms: int = DEFAULT_CADENCE_MS
) -> AsyncIterator[str]:
    """Serve the demo model while the block runs; gives its base URL, reachable at once.

    `port` 0 takes a free one. At the end open streams are cut, so that leaving takes well under two seconds.

    Raises:
        OSError: the port is taken.
    """
    listener = socket.create_server((host, port))
    listener.setsockopt(
        socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
    )  # asyncio asks only for sockets it made
    app = create_demo_app(cadence_ms=cadence_ms)
    async with run_server(app, listener):
        yield f"http://{host}:{listener.getsockname()[1]}"


class _BadRequest(Exception):
    """The body is no Messages request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A Messages call in progress: what is needed to send any reply to it."""

    request: Request
    body: Mapping[str, object]
    model: str
    is_streaming: bool
    input_tokens: int


class _Demo:
    """The routes that need the model."""

    def __init__(self, *, cadence_ms: int, new_id: NewId) -> None:
        self._cadence_ms = cadence_ms
        self._new_id = new_id
        self._model = DemoModel()

    async def answer_messages(self, request: Request) -> Response:
        try:
            call = await _read_call(request)
        except _BadRequest as exc:
            return self._error(400, "invalid_request_error", str(exc))
        conversation = read_conversation(
            call.body, session=request.headers.get(_SESSION_HEADER, "")
        )
        return await self._send(call, self._model.reply(conversation))

    async def count_tokens(self, request: Request) -> Response:
        try:
            call = await _read_call(request)
        except _BadRequest as exc:
            return self._error(400, "invalid_request_error", str(exc))
        return _json({"input_tokens": call.input_tokens})

    async def refuse_path(self, request: Request, exc: Exception) -> Response:  # noqa: ARG002 - Starlette's shape
        return self._error(
            404, "not_found_error", f"{request.method} {request.url.path} is not known here"
        )

    async def _send(self, call: _Call, reply: Reply) -> Response:
        delay_s = reply.pace.delay_ms / 1000
        if delay_s and await _client_leaves_within(call.request, delay_s):
            return Response(status_code=204)
        match reply:
            case Answer():
                return self._send_answer(call, reply)
            case Failure():
                return self._failure(reply)
            case Raw():
                return Response(reply.body, reply.status, media_type=reply.content_type)
            case Broken(after_chars=int()) if call.is_streaming:
                return _stream(self._broken_stream(call, reply))
            case Broken(ending=Failure() as failure):
                return self._failure(failure)
            case Broken(ending="hang"):
                await _client_leaves_within(call.request, math.inf)
                return Response(status_code=204)
            case Broken():
                await cut_connection(call.request)
                return Response(status_code=204)

    def _send_answer(self, call: _Call, answer: Answer) -> Response:
        if call.is_streaming:
            return _stream(self._answer_stream(call, answer))
        body = answer_body(
            answer, model=call.model, input_tokens=call.input_tokens, new_id=self._new_id
        )
        return _json(body, headers={"request-id": self._new_id("req_")})

    async def _answer_stream(self, call: _Call, answer: Answer) -> AsyncIterator[bytes]:
        pause_s = self._pause_s(answer.pace.delta_delay_ms)
        events = stream_answer(
            answer, model=call.model, input_tokens=call.input_tokens, new_id=self._new_id
        )
        for event in events:
            yield event.encode()
            if event.is_delta:
                await anyio.sleep(pause_s)

    async def _broken_stream(self, call: _Call, broken: Broken) -> AsyncIterator[bytes]:
        start = message_start(model=call.model, input_tokens=call.input_tokens, new_id=self._new_id)
        yield start.encode() + stream_text_start(0).encode()
        for event in stream_text_deltas(0, broken.text[: broken.after_chars]):
            yield event.encode()
            await anyio.sleep(self._pause_s(broken.pace.delta_delay_ms))
        if broken.ending == "drop":
            await cut_connection(call.request)
        elif broken.ending == "hang":
            await anyio.sleep_forever()  # cancelled when the client goes away
        else:
            body = error_body(
                broken.ending.error_type, broken.ending.message, request_id=self._new_id("req_")
            )
            yield Event(data=body).encode()

    def _pause_s(self, delta_delay_ms: int | None) -> float:
        return (self._cadence_ms if delta_delay_ms is None else delta_delay_ms) / 1000

    def _failure(self, failure: Failure) -> Response:
        return self._error(
            failure.status,
            failure.error_type,
            failure.message,
            retry_after_s=failure.retry_after_s,
        )

    def _error(
        self, status: int, error_type: str, message: str, *, retry_after_s: float | None = None
    ) -> Response:
        request_id = self._new_id("req_")
        headers = {"request-id": request_id}
        if retry_after_s is not None:
            headers["retry-after"] = f"{retry_after_s:g}"
        body = error_body(error_type, message, request_id=request_id)
        return _json(body, status_code=status, headers=headers)


async def _read_call(request: Request) -> _Call:
    try:
        body = json.loads(bound_depth((await request.body()).decode(), _MAX_DEPTH))
    except ValueError as exc:
        raise _BadRequest(f"The request body is not valid JSON: {exc}") from exc
    if not isinstance(body, dict):
        raise _BadRequest("The request body must be a JSON object")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _BadRequest("messages: at least one message is required")
    size = [messages, body.get("system", ""), body.get("tools", [])]
    return _Call(
        request=request,
        body=body,
        model=str(body.get("model", DEMO_MODEL)),
        is_streaming=body.get("stream") is True,
        input_tokens=estimate_tokens(size),
    )


async def _client_leaves_within(request: Request, seconds: float) -> bool:
    """Wait, but no longer than the client does; the body must have been read."""
    with anyio.move_on_after(seconds):
        while True:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                return True
    return False


def _json(
    body: object, *, status_code: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(encode_json(body), status_code, headers, media_type="application/json")


def _stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    headers = {"cache-control": "no-cache"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def _greet(request: Request) -> Response:  # noqa: RUF029, ARG001 - Starlette's shape
    return PlainTextResponse(_GREETING)


async def _list_models(request: Request) -> Response:  # noqa: RUF029, ARG001 - Starlette's shape
    return _json(models_body())


async def _show_model(request: Request) -> Response:  # noqa: RUF029 - Starlette's shape
    return _json({**model_body(), "id": request.path_params["model_id"]})


def _random_id(prefix: str) -> str:
    return f"{prefix}{uuid.uuid4().hex[:24]}"
