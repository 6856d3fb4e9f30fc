"""Bodies as they come over a connection: in pieces, too many of them, or never."""

import json
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

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


async def test_a_client_that_sends_far_too_much_still_gets_to_read_why(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        answer = await stage.client().post("/chat", content=b"x" * 20_000_000)
        assert_error(answer, 413, "body_too_large")


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
