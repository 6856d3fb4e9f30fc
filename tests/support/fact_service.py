"""A model's service on raw sockets: the last prompt names the fact that the service shows, `FACT:name`.

It counts the requests for each prompt, so that a fact can end after some of them.
"""

import json
import re
import ssl
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import SocketStream
from anyio.from_thread import start_blocking_portal

from tests.support.raw_model import MESSAGE, block, message
from tests.support.relays import Handler as Act
from tests.support.relays import read_request, service

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
PING = b'event: ping\ndata: {"type": "ping"}\n\n'
SENTENCE = "The whole answer, from its beginning to its end."


def events(text: str, piece_chars: int = 10_000) -> list[bytes]:
    """Return the server-sent events of an answer."""
    pieces = [text[start : start + piece_chars] for start in range(0, len(text), piece_chars)]
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    told = message([block(0, {"type": "text", "text": ""}, *deltas)], "end_turn")
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in told]


def answer(
    text: str = SENTENCE,
    *,
    pieces: int | None = None,
    then: bytes = b"",
    hold_s: float = 0.0,
    piece_chars: int = 10_000,
) -> Act:
    """Send the first events of an answer, other bytes, and nothing for a while; then close."""

    async def act(stream: SocketStream) -> None:
        await stream.send(HEAD + b"".join(events(text, piece_chars)[:pieces]) + then)
        await anyio.sleep(hold_s)

    return act


def refuse(status: int, **headers: str) -> Act:
    """Answer with an error of the API."""

    async def act(stream: SocketStream) -> None:
        body = b'{"type": "error", "error": {"type": "api_error", "message": "no"}}'
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} No\r\ncontent-type: application/json\r\n{more}"
        await stream.send(
            f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body
        )

    return act


def say(data: bytes) -> Act:
    """Send these bytes and close."""

    async def act(stream: SocketStream) -> None:
        await stream.send(data)

    return act


async def pings(stream: SocketStream) -> None:
    """Begin an answer and send nothing but signs of life."""
    await stream.send(HEAD + events(SENTENCE)[0])
    while True:
        await stream.send(PING)
        await anyio.sleep(0.3)


WHOLE = say(
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
    + json.dumps(
        {**MESSAGE, "content": [{"type": "text", "text": SENTENCE}], "stop_reason": "end_turn"}
    ).encode()
)
"""An answer that is no stream, for which the agent asks after some streams that broke."""


CLOSE = say(b"")


@dataclass(frozen=True, slots=True)
class Fact:
    """What the service does for the first requests of a prompt."""

    act: Act
    times: int = 99
    unstreamed: Act = CLOSE
    """The same for a request for an answer that is no stream."""


@dataclass(slots=True)
class FactService:
    """The service; `facts` says what it does first, by name and attempt. After that it answers."""

    facts: Mapping[str, Fact]
    url: str = ""
    asked: Counter[str] = field(default_factory=Counter)
    """The requests so far, by prompt."""

    async def serve(self, stream: SocketStream) -> None:
        """Answer one request."""
        _, body = await read_request(stream)
        name = re.findall(rb"FACT:(\w+)", body)[-1].decode()
        self.asked[name] += 1
        fact = self.facts.get(name, Fact(answer()))
        streams = b'"stream":true' in body.replace(b" ", b"")
        if self.asked[name] > fact.times:
            act = answer() if streams else WHOLE
        else:
            act = fact.act if streams else fact.unstreamed
        await act(stream)


@contextmanager
def fact_service(
    facts: Mapping[str, Fact], tls: ssl.SSLContext | None = None
) -> Iterator[FactService]:
    """Serve in a thread while the block runs."""
    facts_shown = FactService(facts)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(service(facts_shown.serve, tls)) as facts_shown.url,
    ):
        yield facts_shown
