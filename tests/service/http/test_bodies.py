"""Bodies as they come over a connection: in pieces, too many of them, or never."""

import json
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from gateway.http.context import HttpLimits
from tests.service.http.stage import LIMIT_S, Stage, assert_error, staged

HEAD = (
    b"POST /chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Connection: close\r\n"
)


async def _all(stream: anyio.abc.ByteStream) -> tuple[int, dict[str, Any]]:
    received = b""
    with anyio.fail_after(LIMIT_S):
        try:
            while True:
                received += await stream.receive()
        except anyio.EndOfStream:
            head, _, body = received.partition(b"\r\n\r\n")
            return int(head.split()[1]), json.loads(body)


async def _exchange(stage: Stage, sent: bytes) -> tuple[int, dict[str, Any]]:
    assert stage.port is not None
    async with await anyio.connect_tcp("127.0.0.1", stage.port) as stream:
        await stream.send(sent)
        return await _all(stream)


async def test_a_body_in_pieces_is_counted_as_it_comes(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True, max_body_bytes=1024) as stage:
        piece = b"200\r\n" + b"x" * 512 + b"\r\n"
        sent = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + 3 * piece
        status, body = await _exchange(stage, sent)  # its end is never sent
        assert (status, body["error"]["code"]) == (413, "body_too_large")


async def test_a_body_in_pieces_that_fits_is_read(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True, max_body_bytes=1024) as stage:
        pieces = b'c\r\n{"message": \r\n5\r\n"hi"}\r\n0\r\n\r\n'
        status, body = await _exchange(stage, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + pieces)
        assert (status, body["reply"]) == (200, "You said: hi")


async def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, on_port=True, max_body_bytes=1024) as stage:
        status, body = await _exchange(stage, HEAD + b"Content-Length: 1025\r\n\r\n")
        assert (status, body["error"]["code"]) == (413, "body_too_large")


async def test_a_client_that_sends_far_too_much_still_gets_to_read_why(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        answer = await stage.client().post("/chat", content=b"x" * 20_000_000)
        assert_error(answer, 413, "body_too_large")


async def test_a_body_that_does_not_come_in_time_is_given_up(tmp_path: Path) -> None:
    quick = HttpLimits(body_deadline_s=0.01)
    async with staged(tmp_path, on_port=True, limits=quick) as stage:
        status, body = await _exchange(stage, HEAD + b'Content-Length: 20\r\n\r\n{"mess')
        assert (status, body["error"]["code"]) == (408, "body_timeout")
        assert body["error"]["retryable"] is True


async def test_a_client_that_leaves_in_the_middle_of_its_body_does_no_harm(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        assert stage.port is not None
        async with await anyio.connect_tcp("127.0.0.1", stage.port) as stream:
            await stream.send(HEAD + b'Content-Length: 20\r\n\r\n{"mess')
        answer = await stage.client().post("/chat", json={"message": "hi"})
        assert answer.status_code == 200
        conversations = (await stage.client().get("/conversations")).json()["conversations"]
        assert len(conversations) == 1
