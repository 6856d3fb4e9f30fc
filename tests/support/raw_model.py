"""A model's service that sends exactly the server-sent events it is given, malformed ones and cut ones too."""

import json
import socket
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from anyio.from_thread import start_blocking_portal
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from gateway.demo.server import cut_connection, run_server

Ending = Literal["whole", "closed", "dropped"]
"""`closed`: the body ends early, as if it were complete; `dropped`: the connection breaks."""
LAST_WORDS = "That is all."
MESSAGE: Mapping[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "raw",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 9},
}


@dataclass(frozen=True, slots=True)
class RawReply:
    """The events of one answer, and how the stream ends after them."""

    events: Sequence[Mapping[str, Any]]
    ending: Ending = "whole"


def message(
    content: Sequence[Sequence[Mapping[str, Any]]], stop_reason: str | None
) -> list[dict[str, Any]]:
    """Return the events of a message around those of its blocks."""
    return [
        {"type": "message_start", "message": MESSAGE},
        *(dict(event) for block in content for event in block),
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": None},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    ]


def block(index: int, start: Mapping[str, Any], *deltas: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events of one content block."""
    return [
        {"type": "content_block_start", "index": index, "content_block": dict(start)},
        *({"type": "content_block_delta", "index": index, "delta": dict(delta)} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]  # fmt: skip


def text_block(index: int, text: str) -> list[dict[str, Any]]:
    """Return the events of a text block."""
    return block(index, {"type": "text", "text": ""}, {"type": "text_delta", "text": text})


@dataclass(slots=True)
class RawModel:
    """An ASGI application that sends the next reply to each model call, and plain words after the last."""

    replies: deque[RawReply] = field(default_factory=deque)
    url: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = await request.body()
        if not scope["path"].endswith("/messages"):
            await _send_json(send, {"input_tokens": 9})
            return
        if json.loads(body).get("stream") is not True:  # what the agent asks after a broken stream
            content = [{"type": "text", "text": LAST_WORDS}]
            await _send_json(send, {**MESSAGE, "content": content, "stop_reason": "end_turn"})
            return
        last = RawReply(message([text_block(0, LAST_WORDS)], "end_turn"))
        reply = self.replies.popleft() if self.replies else last
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for event in reply.events:
            data = f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n".encode()
            await send({"type": "http.response.body", "body": data, "more_body": True})
        if reply.ending == "dropped":
            await cut_connection(request)
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_json(send: Send, value: object) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(value).encode()})


@contextmanager
def raw_model() -> Iterator[RawModel]:
    """Serve a raw model on loopback while the block runs."""
    model = RawModel()
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(run_server(model, listener)),
    ):
        model.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield model
