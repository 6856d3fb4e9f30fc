"""Other gateways in the same run, `--peer NAME=URL`, asked over plain HTTP with as little work as can be.

A URL that ends with `/chat/completions` is asked as OpenAI's API is, streaming, with the conversation's
messages and a name for it in `user`; any other URL is the address of a Candor server.
"""

import json
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteStream

_CHUNKED_END = b"0\r\n\r\n"
_KEPT_S = 2.0


@dataclass
class Conversation:
    """What a peer needs to go on with a conversation."""

    id: str | None = None
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    messages: list[dict[str, str]] = field(default_factory=list)


class Peer:
    """A server by name and URL; `http` alone."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        parts = urlsplit(url)
        assert parts.scheme == "http", f"{url} is not http://"
        assert parts.hostname is not None, f"{url} has no host"
        self._address = parts.hostname, parts.port or 80
        self._is_openai = parts.path.endswith("/chat/completions")
        self._path = parts.path if self._is_openai else f"{parts.path.rstrip('/')}/chat/stream"
        self._links: list[tuple[float, ByteStream]] = []
        """Kept connections, with the time of their last use."""

    async def ask(self, text: str, conversation: Conversation) -> float:
        """Ask; return the seconds to the first text."""
        body = json.dumps(self._body(text, conversation)).encode()
        head = (
            f"POST {self._path} HTTP/1.1\r\nHost: {self._address[0]}:{self._address[1]}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        link = await self._link()
        begin = time.perf_counter()
        await link.send(head.encode() + body)
        data, first = b"", None
        mark, end = (
            (b'"content":', b"data: [DONE]")
            if self._is_openai
            else (b"event: text.delta", b"event: turn.completed\ndata: ")
        )
        while not (end in data and data.endswith((b"\n\n", _CHUNKED_END))):
            data += await link.receive()
            if first is None and mark in data and self._has_text(data):
                first = time.perf_counter() - begin
        assert first is not None, data[:2000]
        self._keep(conversation, data)
        if data.endswith(_CHUNKED_END):
            self._links.append((time.monotonic(), link))
        else:
            await link.aclose()
        return first

    async def _link(self) -> ByteStream:
        """Return a connection that was used just now, or a new one: servers close idle ones."""
        while self._links:
            used_at, link = self._links.pop()
            if time.monotonic() - used_at < _KEPT_S:
                return link
            await link.aclose()
        return await anyio.connect_tcp(*self._address)

    async def close(self) -> None:
        """Close the kept connections."""
        for _, link in self._links:
            await link.aclose()

    def _body(self, text: str, conversation: Conversation) -> dict[str, Any]:
        if not self._is_openai:
            named = {"conversation_id": conversation.id} if conversation.id else {}
            return {"message": text, **named}
        conversation.messages.append({"role": "user", "content": text})
        return {
            "model": "candor-demo",
            "stream": True,
            "user": conversation.name,
            "messages": conversation.messages,
        }

    def _has_text(self, data: bytes) -> bool:
        return not self._is_openai or any(_contents(data))

    def _keep(self, conversation: Conversation, data: bytes) -> None:
        if self._is_openai:
            reply = "".join(_contents(data))
            conversation.messages.append({"role": "assistant", "content": reply})
        else:
            line = data.rsplit(b"event: turn.completed\ndata: ", 1)[1].split(b"\n", 1)[0]
            conversation.id = json.loads(line)["conversation_id"]


def _contents(data: bytes) -> list[str]:
    """Return the pieces of text in the whole lines of a stream of completions."""
    contents = []
    for line in data.split(b"\n")[:-1]:
        if line.startswith(b"data: {"):
            choices = json.loads(line[6:]).get("choices") or [{}]
            contents.append((choices[0].get("delta") or {}).get("content") or "")
    return [content for content in contents if content]


@asynccontextmanager
async def peers_of(named: Sequence[str]) -> AsyncIterator[list[Peer]]:
    """Yield the peers of `NAME=URL` texts; their connections are closed afterwards."""
    peers = [Peer(*text.split("=", 1)) for text in named]
    try:
        yield peers
    finally:
        for peer in peers:
            await peer.close()
