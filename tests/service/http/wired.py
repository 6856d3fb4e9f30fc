"""Clients that write what they like to a connection."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.abc import SocketStream

from tests.service.http.stage import LIMIT_S

HOST = b"Host: 127.0.0.1\r\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one request."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class RawClient:
    """A connection on which anything can be written."""

    def __init__(self, stream: SocketStream) -> None:
        self.stream = stream
        self._read = b""

    async def send(self, data: bytes) -> None:
        await self.stream.send(data)

    async def answer(self) -> Answer | None:
        """Read one answer; None: the connection was closed without one."""
        with anyio.fail_after(LIMIT_S):
            while b"\r\n\r\n" not in self._read:
                if not await self._more():
                    assert not self._read
                    return None
            head, _, self._read = self._read.partition(b"\r\n\r\n")
            first, *rest = head.decode().split("\r\n")
            headers = {
                name.lower(): value for name, value in (line.split(": ", 1) for line in rest)
            }
            length = int(headers.get("content-length", 0))
            while len(self._read) < length:
                assert await self._more(), "the answer was cut"
            body, self._read = self._read[:length], self._read[length:]
            return Answer(int(first.split()[1]), headers, body)

    async def expect(self, status: int = 200) -> Answer:
        """Read one answer, which must have a status."""
        answer = await self.answer()
        assert answer is not None, "the connection was closed"
        assert answer.status == status
        return answer

    async def is_closed(self) -> bool:
        """Wait for the other side to close; nothing may come before that."""
        with anyio.fail_after(LIMIT_S):
            return not await self._more() and not self._read

    async def _more(self) -> bool:
        try:
            self._read += await self.stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return False
        return True


@asynccontextmanager
async def raw(port: int) -> AsyncIterator[RawClient]:
    """Connect to the server."""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        yield RawClient(stream)
