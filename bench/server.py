"""The gateway as a person runs it: `python app.py` in a process of its own, asked over HTTP."""

import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import psutil
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from bench.stand_in import ROOT, clean_environ


@dataclass(frozen=True)
class Gateway:
    """A running gateway."""

    port: int
    process: psutil.Process

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a request on a connection of its own and read the JSON answer."""
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            await stream.send(_request(self.port, path, body))
            reader = BufferedByteReceiveStream(stream)
            head = await reader.receive_until(b"\r\n\r\n", 65536)
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            answer = json.loads(await reader.receive_exactly(length)) if length else {}
            assert b" 20" in head.split(b"\r\n")[0], answer
            return answer


class Connection:
    """A kept-alive connection that reads event streams with as little work as can be."""

    def __init__(self, stream: ByteStream, port: int) -> None:
        self._stream = stream
        self._port = port
        self._buffer = b""

    async def ask(self, body: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """Ask; gives the seconds to the first text, and the turn result."""
        begin = time.perf_counter()
        await self._stream.send(_request(self._port, "/chat/stream", body))
        first: float | None = None
        data = b""
        while b"event: turn.completed\ndata: " not in data or not data.endswith(b"0\r\n\r\n"):
            data += await self._stream.receive()
            if first is None and b"event: text.delta" in data:
                first = time.perf_counter() - begin
        assert first is not None, data
        line = data.rsplit(b"event: turn.completed\ndata: ", 1)[1].split(b"\n", 1)[0]
        return first, json.loads(line)

    async def call(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> tuple[float, Any]:
        """Send a request that is answered with JSON; gives the seconds it took, and the answer."""
        begin = time.perf_counter()
        await self._stream.send(_request(self._port, path, body or {}, method=method))
        data = b""
        while b"\r\n\r\n" not in data:
            data += await self._stream.receive()
        head, _, content = data.partition(b"\r\n\r\n")
        assert b" 20" in head.split(b"\r\n")[0], data
        length = 0
        if b"content-length:" in head.lower():
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(content) < length:
            content += await self._stream.receive()
        return time.perf_counter() - begin, json.loads(content) if content else None


def _request(port: int, path: str, body: dict[str, Any], *, method: str = "POST") -> bytes:
    content = json.dumps(body).encode() if body else b""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


@asynccontextmanager
async def connection(gateway: Gateway) -> AsyncIterator[Connection]:
    async with await anyio.connect_tcp("127.0.0.1", gateway.port) as stream:
        yield Connection(stream, gateway.port)


@asynccontextmanager
async def running_gateway(
    directory: Path, *, program: Sequence[str] = ("app.py",), **settings: str
) -> AsyncIterator[Gateway]:
    """Run a gateway while the block runs; `settings` are environment variables."""
    environ = clean_environ(
        CANDOR_PORT="0",
        CANDOR_WORKSPACE=str(directory / "workspace"),
        CANDOR_DATA_DIR=str(directory / "data"),
        CANDOR_LOG_DIR=str(directory / "logs"),
        **settings,
    )
    errors = (directory / "server.log").open("wb")
    process = await anyio.open_process(
        [sys.executable, *program], cwd=ROOT, env=environ, stderr=errors
    )
    try:
        assert process.stdout is not None
        text = ""
        while "Open http" not in text:
            text += (await process.stdout.receive()).decode()
        port = int(text.rsplit(":", 1)[1])
        yield Gateway(port, psutil.Process(process.pid))
    finally:
        process.terminate()
        await process.wait()
        errors.close()
