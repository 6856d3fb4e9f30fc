"""Whatever the model's service answers, with whatever framing, ends nothing but the call that it answers."""

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise

import anyio
import httpx
import pytest
from anyio.abc import SocketStream
from anyio.from_thread import start_blocking_portal
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.relay.supervisor import open_relay
from gateway.relay.upstream import Target
from gateway.turns.evidence import Evidence
from gateway.turns.reply import Ending, build_reply_text
from tests.support.relays import OK, Agent, read_request, service

KEY = "sk-real-" + "k7Qz" * 10
WELL = b'{"content": []}'
MANY = "9" * 5_000

VERSIONS = st.sampled_from([*["HTTP/1.1"] * 6, "HTTP/1.0", "HTTP/2", "HTTP/99.9", "SSH-2.0", ""])
STATUSES = st.sampled_from(["200", "200", "200", "401", "429", "529"]) | st.one_of(
    st.integers(0, 999).map("{:03d}".format), st.sampled_from(["1000", "-1", "2e2", "", MANY])
)
NAMES = st.sampled_from(
    [
        *("location", "retry-after", "content-length", "transfer-encoding", "content-type"),
        *("content-encoding", "connection", "set-cookie", "date", "upgrade", "trailer"),
        *("x-should-retry", "anthropic-ratelimit-requests-reset", "x" * 9_000, "bad name", ""),
    ]
)
VALUES = st.sampled_from(
    [
        *("inf", "-inf", "nan", "1e999", "-1", "0", "3", MANY, "", " ", "\0", "\xff", "x" * 66_000),
        *("Mon, 01 Jan 99999 00:00:00 GMT", f"Mon, 01 Jan {MANY} 00:00:00 GMT", "Mon, 32 Foo"),
        *(f"https://{'h' * 66_000}/", "https://[", "//", "http://a:99999999/", f"https://{KEY}/"),
        *("chunked", "chunked, chunked", "gzip", "identity", "close", "keep-alive", "h2c"),
        *("text/event-stream", "application/json", "text/html", KEY, f"a {KEY}\r\n {KEY} b"),
    ]
)
HEADERS = st.lists(st.builds("{}: {}\r\n".format, NAMES, VALUES), max_size=4).map("".join)
FRAMING = st.sampled_from(
    [
        *("content-length: 30\r\n", "content-length: 3\r\n", "content-length: 99999999\r\n"),
        *("transfer-encoding: chunked\r\n", "transfer-encoding: chunked\r\ncontent-length: 4\r\n"),
        *(f"content-length: {MANY}\r\n", "content-length: 1\r\ncontent-length: 2\r\n", ""),
    ]
)
KIND = st.sampled_from(["text/event-stream", "application/json", "text/html"])
BODIES = st.lists(
    st.sampled_from(
        [
            *("{", "}", '{"content": [{"type": "tool_use", "name": 7}], "n": NaN}', "[" * 60_000),
            *('data: {"type": "message_start"}\n\n', 'data: {"type": "ping"}\n\n', "\n", "\r\n"),
            'data: {"type": "error", "error": {"type": ["overloaded_error"]}}\n\n',
            'data: {"type": "content_block_start", "content_block": {"type": "tool_use"}}\n\n',
            'data: {"type": "content_block_start", "content_block": {"type": "tool_use", "n": '
            + '{"a":' * 900
            + "1"
            + "}" * 902
            + "\n\n",
            *(f'data: {{"type": "error", "n": {MANY}}}\n', "data:", KEY, f"no {KEY} {KEY[:20]}"),
            *("0\r\n\r\n", "5\r\nhello\r\n", "-1\r\n", "f" * 30 + "\r\n", "3;x=y\r\nabc\r\n", "\0"),
        ]
    ),
    max_size=5,
).map("".join)
HINTS = st.sampled_from(["", "", "", "HTTP/1.1 103 Hints\r\nlink: x\r\n\r\n" * 3])
CUTS = st.lists(st.floats(0, 1), max_size=3)


@dataclass(frozen=True, slots=True)
class Hostile:
    """What the service sends, in one write or in several."""

    data: bytes
    cuts: tuple[float, ...] = ()

    @property
    def pieces(self) -> list[bytes]:
        ends = sorted({0, len(self.data), *(int(len(self.data) * cut) for cut in self.cuts)})
        return [self.data[start:end] for start, end in pairwise(ends)]


def hostile(
    version: str, status: str, headers: str, framing: str, kind: str, hints: str, body: str,
    cuts: list[float],
) -> Hostile:  # fmt: skip
    head = f"{hints}{version} {status} X\r\ncontent-type: {kind}\r\n{headers}{framing}\r\n"
    return Hostile((head + body).encode("latin-1"), tuple(cuts))


ANSWERS = st.one_of(
    st.builds(hostile, VERSIONS, STATUSES, HEADERS, FRAMING, KIND, HINTS, BODIES, CUTS),
    st.builds(Hostile, st.binary(max_size=300), st.just((0.5,))),
)


def answer(status: int, header: str, body: str = "{}", cut: float = 1.0) -> Hostile:
    data = f"HTTP/1.1 {status} X\r\n{header}\r\ncontent-length: {len(body)}\r\n\r\n{body}"
    return Hostile(data.encode(), (cut,))


@dataclass(slots=True)
class Stage:
    """A relay with an agent that gets hostile answers, and one that gets good ones."""

    relay_pid: int = 0
    answer: Hostile = Hostile(b"")
    victim: Agent = field(init=False)
    bystander: Agent = field(init=False)
    http: httpx.Client = field(
        default_factory=lambda: httpx.Client(trust_env=False, verify=False, timeout=30)
    )

    async def serve(self, stream: SocketStream) -> None:
        """Answer as hostile as is asked for."""
        while True:
            head, _ = await read_request(stream)
            if "/v1/messages?well" in head:
                await stream.send(OK % (len(WELL), WELL))
                continue
            stream.extra(anyio.abc.SocketAttribute.raw_socket).setsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
            )
            for piece in self.answer.pieces:
                await stream.send(piece)
                await anyio.lowlevel.checkpoint()
            return

    def ask(self, agent: Agent, query: str = "") -> bytes:
        """Return all that an agent gets; nothing if its connection breaks."""
        url = f"{agent.relay.url}/v1/messages{query}"
        headers = {"x-api-key": agent.token}
        got = b""
        with (
            suppress(httpx.HTTPError),
            self.http.stream("POST", url, content=b"{}", headers=headers) as response,
        ):
            got = b"".join(name + value for name, value in response.headers.raw)
            for piece in response.iter_raw():
                got += piece
        return got


@asynccontextmanager
async def opened(stage: Stage) -> AsyncIterator[None]:
    async with service(stage.serve) as url:
        target = Target(url=url, headers=[("x-api-key", KEY)], secrets=[KEY])
        async with open_relay(target, {}) as relay:
            stage.victim, stage.bystander = Agent(relay), Agent(relay, "agent-2")
            yield


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    stage = Stage()
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opened(stage)):
        assert stage.ask(stage.bystander, "?well").endswith(WELL)
        stage.relay_pid = stage.bystander.relay.pid or 0
        yield stage
    stage.http.close()


@example(answer(302, f"location: https://{'h' * 66_000}/"))
@example(answer(302, f"location: https://{KEY}/"))
@example(answer(304, "etag: 1", body=""))
@example(answer(204, "etag: 1", body=""))
@example(answer(429, "retry-after: inf"))
@example(answer(503, f"retry-after: {MANY}"))
@example(answer(503, "retry-after: Mon, 01 Jan 99999 00:00:00 GMT"))
@example(answer(401, "content-type: application/json", f"bad key {KEY} " * 3, cut=0.7))
@example(answer(401, f"x-key: your {KEY}"))
@given(ANSWERS)
def test_no_answer_of_the_service_ends_more_than_its_call(stage: Stage, sent: Hostile) -> None:
    stage.victim.reports.clear()
    stage.answer = sent
    got = stage.ask(stage.victim)
    assert KEY.encode() not in got
    assert stage.ask(stage.bystander, "?well").endswith(WELL), "another agent's next call"
    assert stage.bystander.relay.pid == stage.relay_pid
    assert stage.bystander.reports == []
    for report in stage.victim.reports:
        evidence = Evidence(service=report, stopped_by="api_error")
        for language in ("en", "zh"):
            said = build_reply_text(evidence, Ending(language=language, log_file="x"))
            assert KEY not in said
            assert len(said) < 1_000
