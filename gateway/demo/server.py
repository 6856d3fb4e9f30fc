"""The demo model as a server: `POST /v1/messages` and `/v1/messages/count_tokens`, on loopback.

`serve_demo` runs it inside the caller's event loop, without touching signals or logging. The agent
process reaches it through `ANTHROPIC_BASE_URL`. It checks no key and calls no other service.
"""

import asyncio
import json
import math
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from itertools import count
from typing import Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from gateway.demo.allowed_call import make_allowed_call
from gateway.demo.answer import (
    DEMO_MODEL,
    Answer,
    Broken,
    Event,
    Failure,
    Raw,
    Reply,
    Text,
    answer_body,
    encode_json,
    error_body,
    estimate_tokens,
    say,
    stream_answer,
)
from gateway.demo.conversation import Conversation, read_conversation
from gateway.demo.respond import answer_plainly
from gateway.demo.script import SCRIPT_ENDED, ScriptError, Step, choose_step, find_script, play
from gateway.nesting import bound_depth

_MAX_COUNTED = 4096


class DemoModel:
    """Answers conversations. Keeps nothing between calls but the number of failed attempts."""

    def __init__(self, replies: Sequence[Answer] = ()) -> None:
        self._attempts = lru_cache(_MAX_COUNTED)(lambda _key, _step_index: count())
        """A counter for each step of each prompt; the least recently used are forgotten."""
        self._replies = replies

    def reply(self, conversation: Conversation) -> Reply:
        """Return the reply to the last prompt, given what has been answered since. Never raises.

        If there are `replies`, a conversation gets them in order.
        """
        if self._replies:
            place = sum(prompt.answered_count for prompt in conversation.prompts)
            return self._replies[place] if place < len(self._replies) else say(SCRIPT_ENDED)
        try:
            return (
                make_allowed_call(conversation)
                or self._scripted(conversation)
                or answer_plainly(conversation)
            )
        except ScriptError as exc:
            return say(f"candor-demo cannot play this script: {exc}")

    def _scripted(self, conversation: Conversation) -> Reply | None:
        """Return the reply of the prompt's own script, or of the last script's
        steps for followups.
        """
        own, answered = find_script(conversation.last.text), conversation.last.answered_count
        if own is not None:
            index = len(conversation.prompts) - 1
            return play(self._choose(own.steps, answered, conversation, index), conversation)
        for index in range(len(conversation.prompts) - 2, -1, -1):
            script = None
            with suppress(ScriptError):
                script = find_script(conversation.prompts[index].text)
            if script is not None:
                step = self._choose(script.on_followup, answered, conversation, index)
                return None if step is None else play(step, conversation)
            answered += conversation.prompts[index].answered_count
        return None

    def _choose(
        self, steps: Sequence[Step], answered_count: int, conversation: Conversation, index: int
    ) -> Step | None:
        is_followup = index < len(conversation.prompts) - 1
        prompt = hash(conversation.prompts[index].text)
        key = (conversation.session, index, prompt, is_followup)
        return choose_step(
            steps,
            answered_count,
            lambda step_index: next(self._attempts(key, step_index)),
            lambda step: step.is_due(conversation),
        )


_TRANSPORT = "demo_transport"
_GRACE_S = 1
"""For handlers that are still unwinding after their connections were cut."""


@asynccontextmanager
async def run_server(app: ASGIApp, listener: socket.socket) -> AsyncIterator[None]:
    """Serve `app` on `listener` while the block runs; closes the socket and every connection at its
    end.
    """
    config = uvicorn.Config(
        app,
        http=_ReachableProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = _QuietServer(config)
    # asyncio sets this only on sockets it made itself
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve_to_the_end, listener)
            try:
                yield
            finally:
                server.should_exit = True
                for connection in list(server.server_state.connections):
                    connection.transport.abort()
    except BaseExceptionGroup as group:
        # An exception of the block leaves as it was raised, not in the task group's group.
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from group.exceptions[0].__cause__
        raise


async def cut_connection(request: Request) -> None:
    """Close the connection of `request` after what has been written, and return when
    it is closed.
    """
    transport: asyncio.Transport = getattr(request.state, _TRANSPORT)
    transport.close()
    while (await request.receive())["type"] != "http.disconnect":
        pass


class _ReachableProtocol(H11Protocol):
    """Puts the connection's transport into the state of its requests."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        super().connection_made(transport)
        self.app_state: dict[str, Any] = {**self.app_state, _TRANSPORT: transport}


class _QuietServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process's owner."""
        yield

    async def serve_to_the_end(self, listener: socket.socket) -> None:
        """Serve until `should_exit`; cancellation waits for it, so that no socket is left open."""
        with anyio.CancelScope(shield=True):
            await self.serve([listener])


DEFAULT_CADENCE_MS = 12

_MAX_DEPTH = 200
"""A call that the model itself nested deeper comes back with the next request, and is cut there."""
_SESSION_HEADER = "x-claude-code-session-id"


def create_demo_app(
    *, cadence_ms: int = DEFAULT_CADENCE_MS, replies: Sequence[Answer] = ()
) -> Starlette:
    """Return the demo model as an ASGI application; `cadence_ms` is the pause between streamed
    chunks.
    """
    demo = _Demo(cadence_ms, replies)
    return Starlette(
        routes=[
            Route("/v1/messages", demo.answer_messages, methods=["POST"]),
            Route("/v1/messages/count_tokens", demo.count_tokens, methods=["POST"]),
        ],
        exception_handlers={HTTPException: _refuse},
    )


@asynccontextmanager
async def serve_demo(
    *, cadence_ms: int = DEFAULT_CADENCE_MS, replies: Sequence[Answer] = ()
) -> AsyncIterator[str]:
    """Serve the demo model on a free port while the block runs and yield its base URL.

    Open streams are cut at the end.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    async with run_server(create_demo_app(cadence_ms=cadence_ms, replies=replies), listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    request: Request
    body: Mapping[str, object]
    model: str
    input_tokens: int

    def stream(self, answer: Answer) -> Iterator[Event]:
        return stream_answer(answer, model=self.model, input_tokens=self.input_tokens)


class _Demo:
    def __init__(self, cadence_ms: int, replies: Sequence[Answer]) -> None:
        self._cadence_ms = cadence_ms
        self._model = DemoModel(replies)

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
        is_streaming = call.body.get("stream") is True
        match reply:
            case Answer() if is_streaming:
                return _stream(self._answer_stream(call, reply))
            case Answer():
                body = answer_body(reply, model=call.model, input_tokens=call.input_tokens)
                return Response(encode_json(body), media_type="application/json")
            case Raw():
                return Response(reply.body, reply.status, media_type=reply.content_type)
            case Broken(after_chars=int()) if is_streaming:
                return _stream(self._broken_stream(call, reply))
            case (Failure() as failure) | Broken(ending=Failure() as failure):
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
            yield Event(data=error_body(broken.ending.error_type, broken.ending.message)).encode()

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
        model=str(body.get("model", DEMO_MODEL)),
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
