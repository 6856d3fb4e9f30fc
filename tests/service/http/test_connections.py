"""Clients that are slow, silent, many, or speak something that is nearly HTTP."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest

from gateway.http.connections import MAX_HEADERS, ConnectionLimits
from gateway.http.context import HttpLimits
from gateway.http.middleware import PROTECTION
from tests.service.http.stage import HOLD, LIMIT_S, Stage, staged
from tests.service.http.wired import HOST, Answer, RawClient, raw
from tests.support.asgi import served

PULSE = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
SOON = ConnectionLimits(patience_s=0.3)
QUICK = HttpLimits(body_deadline_s=0.3)


def post(path: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    head = [b"POST " + path + b" HTTP/1.1", b"Host: 127.0.0.1", *headers]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


JSON = b"Content-Type: application/json"


def message_to(path: bytes, message: str) -> bytes:
    body = b'{"message": "%s"}' % message.encode()
    return post(path, JSON, b"Content-Length: %d" % len(body), body=body)


@asynccontextmanager
async def on_the_wire(
    directory: Path, limits: ConnectionLimits | None = None
) -> AsyncIterator[tuple[Stage, int]]:
    async with staged(directory) as stage, served(stage.app, limits) as port:
        yield stage, port


async def assert_refused(client: RawClient, status: int, code: str) -> Answer:
    answer = await client.expect(status)
    error = answer.json["error"]
    assert error["code"] == code
    assert error["request_id"] == answer.headers["x-request-id"]
    assert error["message"].endswith(".")
    for name, value in PROTECTION.items():
        assert answer.headers[name.lower()] == value
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/json"
    return answer


async def assert_serves(port: int) -> None:
    async with raw(port) as client:
        await client.send(PULSE)
        await client.expect()


async def drip(client: RawClient, data: bytes) -> None:
    """Send a byte now and then, until the other side has had enough."""
    for at in range(len(data)):
        try:
            await client.send(data[at : at + 1])
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
        await anyio.sleep(0.005)


async def test_a_connection_without_a_whole_head_is_closed_first_or_second(tmp_path: Path) -> None:
    async with on_the_wire(tmp_path, SOON) as (_, port):
        async with raw(port) as client, raw(port) as half:
            await half.send(b"GET /healthz HTTP/1.1\r\nHost: 127.0")
            assert await client.is_closed()
            assert await half.is_closed()
        async with raw(port) as second:
            await second.send(PULSE)
            await second.expect()
            await second.send(b"GET /he")
            assert await second.is_closed()


async def test_a_head_that_comes_byte_by_byte_gains_no_time_with_each(tmp_path: Path) -> None:
    async with (
        on_the_wire(tmp_path, SOON) as (_, port),
        raw(port) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(drip, client, b"GET /healthz HTTP/1.1\r\nX-Slow: " + b"a" * 100_000)
        assert await client.is_closed()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("path", [b"/chat", b"/mcp"])
async def test_a_body_that_comes_byte_by_byte_gains_no_time_with_each(
    tmp_path: Path, path: bytes
) -> None:
    async with (
        staged(tmp_path, limits=QUICK) as stage,
        served(stage.app) as port,
        raw(port) as client,
        anyio.create_task_group() as tasks,
    ):
        await client.send(post(path, JSON, b"Content-Length: 100000"))
        tasks.start_soon(drip, client, b"[" * 100_000)
        await assert_refused(client, 408, "body_timeout")
        tasks.cancel_scope.cancel()


async def test_a_body_that_nobody_reads_any_more_is_not_taken_for_ever(tmp_path: Path) -> None:
    async with on_the_wire(tmp_path, SOON) as (_, port), raw(port) as client:
        foreign = b"Origin: http://evil.example"
        await client.send(post(b"/new-conversation", foreign, b"Content-Length: 100000"))
        await assert_refused(client, 403, "forbidden")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drip, client, b"x" * 100_000)
            assert await client.is_closed()
            tasks.cancel_scope.cancel()


FORM = b"Content-Type: multipart/form-data; boundary=x"
CLOSE = b"Connection: close"
BODY = b"x" * 16_000_000
"""More than the buffers of a connection hold."""
LENGTH = b"Content-Length: %d" % len(BODY)
PIECES = b"Transfer-Encoding: chunked"
REFUSED = {
    "an upload that says its length": (413, post(b"/workspace/files", FORM, CLOSE, LENGTH)),
    "an upload in pieces": (413, post(b"/workspace/files", FORM, CLOSE, PIECES)),
    "a message": (413, post(b"/chat", JSON, CLOSE, LENGTH)),
    "a message in pieces": (413, post(b"/chat", JSON, CLOSE, PIECES)),
    "another type": (422, post(b"/chat", b"Content-Type: text/plain", CLOSE, PIECES)),
    "an unknown route": (404, post(b"/nowhere", JSON, CLOSE, PIECES)),
    "a foreign page": (403, post(b"/chat", b"Origin: http://evil.example", CLOSE, LENGTH)),
    "two framings": (400, post(b"/chat", JSON, PIECES, LENGTH)),
    "an old protocol": (413, post(b"/chat", JSON, LENGTH).replace(b"HTTP/1.1", b"HTTP/1.0")),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_a_refused_client_that_writes_everything_first_reads_its_answer(
    tmp_path: Path, what: str
) -> None:
    status, head = REFUSED[what]
    whole = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY) if PIECES in head else BODY
    async with (
        staged(tmp_path, max_upload_bytes=1024, max_body_bytes=1024) as stage,
        served(stage.app) as port,
        raw(port) as client,
    ):
        await client.send(head + whole)
        await client.expect(status)
        assert await client.is_closed()


@pytest.mark.parametrize(
    "limits",
    [HttpLimits(discard_deadline_s=0.05), HttpLimits(discard_bytes=100, discard_deadline_s=3600)],
)
async def test_the_rest_of_a_refused_body_is_not_read_for_ever(
    tmp_path: Path, limits: HttpLimits
) -> None:
    async with (
        staged(tmp_path, limits=limits) as stage,
        served(stage.app) as port,
        raw(port) as client,
        anyio.create_task_group() as tasks,
    ):
        await client.send(post(b"/nowhere", CLOSE, LENGTH))
        await client.expect(413)
        tasks.start_soon(drip, client, BODY)
        assert await client.is_closed()
        tasks.cancel_scope.cancel()


async def test_a_turn_that_takes_long_is_not_cut_by_the_deadlines_of_a_head(tmp_path: Path) -> None:
    async with on_the_wire(tmp_path, SOON) as (stage, port), raw(port) as client:
        await client.send(message_to(b"/chat", HOLD))
        await _until_another_was_cut(port)
        stage.release()
        assert (await client.expect()).json["reply"] == "one"


async def _until_another_was_cut(port: int) -> None:
    """Wait as long as a deadline takes, and longer: twice one after the other."""
    for _ in range(2):
        async with raw(port) as other:
            assert await other.is_closed()


async def test_many_idle_connections_do_not_keep_a_client_out(tmp_path: Path) -> None:
    few = ConnectionLimits(max_connections=20)
    async with on_the_wire(tmp_path, few) as (_, port), AsyncExitStack() as stack:
        idle = [await stack.enter_async_context(raw(port)) for _ in range(60)]
        for half in idle[::2]:
            with anyio.move_on_after(LIMIT_S), suppress(anyio.BrokenResourceError):
                await half.send(b"GET / HTTP/1.1\r\n")
        await assert_serves(port)
        assert await idle[0].is_closed()


async def test_where_every_connection_is_served_one_more_is_told_to_come_back(
    tmp_path: Path,
) -> None:
    one = ConnectionLimits(max_connections=1)
    async with on_the_wire(tmp_path, one) as (stage, port), raw(port) as busy:
        await busy.send(message_to(b"/chat/stream", HOLD))
        assert await busy.stream.receive()
        async with raw(port) as late:
            answer = await assert_refused(late, 503, "overloaded")
            assert int(answer.headers["retry-after"]) > 0
            assert await late.is_closed()
        stage.release()


MALFORMED = {
    "not http": b"hello\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 40 + b"\r\n\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    "a head without end": b"GET /healthz HTTP/1.1\r\n" + HOST + b"X-Big: " + b"a" * 400_000,
    "headers without end": b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 80_000,
    "a header without a colon": b"GET /healthz HTTP/1.1\r\n" + HOST + b"nonsense\r\n\r\n",
    "space before the colon": b"GET /healthz HTTP/1.1\r\n" + HOST + b"Content-Length : 5\r\n\r\n",
    "a nul in a header": b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n",
    "a folded first header": b"GET /healthz HTTP/1.1\r\n X: y\r\n" + HOST + b"\r\n",
    "two lengths": post(b"/chat", b"Content-Length: 5", b"Content-Length: 6"),
    "a length with a sign": post(b"/chat", b"Content-Length: +5"),
    "a length in hex": post(b"/chat", b"Content-Length: 0x10"),
    "two encodings": post(b"/chat", b"Transfer-Encoding: gzip, chunked"),
    "an encoding in disguise": post(b"/chat", b"Transfer-Encoding: xchunked"),
    "a length and pieces": post(
        b"/chat", JSON, b"Content-Length: 4", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"
    ),
    "pieces and a length": post(
        b"/chat", JSON, b"Transfer-Encoding: chunked", b"Content-Length: 40", body=b"0\r\n\r\n"
    ),
    "a piece of no size": post(b"/chat", JSON, b"Transfer-Encoding: chunked", body=b"zz\r\n"),
    "a space in the target": b"GET /healthz x HTTP/1.1\r\n" + HOST + b"\r\n",
    "raw utf-8 in the target": "GET /日志 HTTP/1.1\r\n".encode() + HOST + b"\r\n",
}
SMUGGLED = b"DELETE /conversations/cnv_x HTTP/1.1\r\n" + HOST + b"\r\n"


async def test_what_is_not_quite_http_is_refused_and_nothing_behind_it_is_read(
    tmp_path: Path,
) -> None:
    async with on_the_wire(tmp_path) as (stage, port):
        for name, malformed in MALFORMED.items():
            async with raw(port) as client:
                with anyio.move_on_after(LIMIT_S), suppress(anyio.BrokenResourceError):
                    await client.send(malformed + SMUGGLED)  # the answer is there all the same
                answer = await client.answer()
                if answer is not None:  # a client that sends on is reset, and may lose the answer
                    assert answer.headers["connection"] == "close", name
                    assert answer.json["error"]["code"] in {"malformed_request", "forbidden"}
                    assert answer.headers["x-content-type-options"] == "nosniff"
                    assert await client.is_closed(), name
                else:
                    assert name.endswith("without end")
        assert b"DELETE" not in stage.metrics.render()[0]
        await assert_serves(port)


TARGETS = [
    *(b"http://evil.example/chat", b"http://127.0.0.1/conversations", b"https://127.0.0.1/"),
    *(b"//conversations", b"/./conversations", b"/static/../conversations", b"*"),
    *(b"127.0.0.1:8000", b"/%63onversations%2F", b"/conversations;x=1", b"/conversations%00"),
    *(b"/conversations%0d%0aX:y", b"/%ff%fe", b"\\conversations", b"/conversations/#x"),
]


async def test_a_request_of_more_headers_than_any_client_sends_is_refused(tmp_path: Path) -> None:
    def asked(count: int) -> bytes:
        more = b"".join(b"X-%d: 1\r\n" % number for number in range(count - 1))
        return b"GET /healthz HTTP/1.1\r\n" + HOST + more + b"\r\n"

    async with on_the_wire(tmp_path) as (_, port), raw(port) as client:
        await client.send(asked(MAX_HEADERS))
        await client.expect()
        await client.send(asked(MAX_HEADERS + 1))
        await assert_refused(client, 400, "malformed_request")
        assert await client.is_closed()


async def test_a_target_in_another_form_is_no_route(tmp_path: Path) -> None:
    async with on_the_wire(tmp_path) as (_, port):
        for target in TARGETS:
            async with raw(port) as client:
                await client.send(b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n")
                await assert_refused(client, 404, "not_found")


async def test_requests_one_behind_the_other_are_answered_in_their_order(tmp_path: Path) -> None:
    async with on_the_wire(tmp_path) as (_, port), raw(port) as client:
        evil = b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n"
        await client.send(PULSE + evil + message_to(b"/chat", "hi") + PULSE)
        answers = [await client.answer() for _ in range(4)]
        assert [answer and answer.status for answer in answers] == [200, 403, 200, 200]


async def test_what_looks_like_a_request_in_a_refused_body_is_none(tmp_path: Path) -> None:
    async with on_the_wire(tmp_path) as (stage, port), raw(port) as client:
        length = b"Content-Length: %d" % len(SMUGGLED)
        await client.send(post(b"/chat", b"Origin: null", length, body=SMUGGLED) + PULSE)
        await assert_refused(client, 403, "forbidden")
        assert (await client.expect()).json == {"ok": True}
        assert b"DELETE" not in stage.metrics.render()[0]


async def test_http_2_is_not_spoken(tmp_path: Path) -> None:
    async with on_the_wire(tmp_path) as (_, port), raw(port) as client:
        await client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        await assert_refused(client, 403, "forbidden")
        await assert_refused(client, 400, "malformed_request")
        assert await client.is_closed()


async def test_an_answer_that_has_begun_is_cut_when_its_request_turns_out_broken(
    tmp_path: Path,
) -> None:
    async with on_the_wire(tmp_path) as (stage, port), raw(port) as client:
        done = await stage.client().say("a")
        path = f"/conversations/{done['conversation_id']}/events?after={done['turn_id']}:0"
        chunked = b"Transfer-Encoding: chunked\r\n\r\n"
        await client.send(b"GET " + path.encode() + b" HTTP/1.1\r\n" + HOST + chunked)
        assert b"200 OK" in await client.stream.receive()
        await client.send(b"zz\r\n")
        cut = suppress(anyio.EndOfStream, anyio.BrokenResourceError)
        with anyio.fail_after(LIMIT_S), cut:
            while True:
                await client.stream.receive()
        await assert_serves(port)
