"""The relay passes requests and answers on as they are, at once, and keeps the key to itself."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import httpx
import pytest
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.tls import TLSStream

from gateway.relay import program, upstream
from gateway.relay.upstream import Service, ServiceUnreachable, Target
from tests.support.engine_talk import until
from tests.support.fact_service import say
from tests.support.relays import (
    END,
    HEAD,
    OK,
    answering,
    chunk,
    make_certificate,
    read_request,
    relayed,
    service,
)

ASKED: Any = (b"POST", b"/v1/messages", [], b"{}")
KEY = {"headers": [("x-api-key", "sk-real"), ("x-team", "blue")]}


async def read_ok(known: Service, act: Callable[[], object] = str) -> None:
    """Ask for `ok`; act before its end, and let the loop read what that sent."""
    answer = await known.ask(*ASKED)
    async for piece in answer.chunks():
        assert piece in {b"ok", b""}
        act()
        for _ in range(9):
            await anyio.lowlevel.checkpoint()


async def test_it_adds_the_key_and_passes_the_rest_on(tmp_path: Path) -> None:
    heard: list[tuple[str, bytes]] = []

    async def handle(stream: SocketStream) -> None:
        while True:
            heard.append(await read_request(stream))
            await stream.send(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
            await stream.send(b"HTTP/1.1 201 OK\r\nx-own: 1\r\ncontent-length: 3\r\n\r\nyes")

    async with service(handle) as url, relayed(f"{url}/some/path/", **KEY) as agent:
        for _ in range(2):
            async with agent.ask("/v1/messages?beta=true", b'{"a": 1}', anthropic="x") as answer:
                assert (answer.status_code, answer.headers["x-own"]) == (201, "1")
                assert await answer.aread() == b"yes"
    for head, body in heard:
        assert head.startswith("post /some/path/v1/messages?beta=true http/1.1\r\n")
        assert body == b'{"a": 1}'
        lines = head.split("\r\n")
        assert {"x-api-key: sk-real", "x-team: blue", "anthropic: x"} <= set(lines)
        assert agent.token.lower() not in head


async def test_the_operators_headers_replace_none_of_the_agents() -> None:
    heard: list[str] = []
    own = {"Anthropic-Beta": "mine", "anthropic-version": "0", "User-Agent": "corp", "X-A": "b"}
    async with (
        service(answering(heard=heard)) as url,
        relayed(url, headers=[*own.items()]) as agent,
    ):
        for more in ({"anthropic_beta": "one,two", "anthropic_version": "1"}, dict[str, Any]()):
            async with agent.ask(**more) as answer:
                assert answer.status_code == 200
    first, second = (dict(line.split(": ", 1) for line in head.split("\r\n")[1:]) for head in heard)
    assert (first["anthropic-beta"], first["anthropic-version"]) == ("one,two,mine", "1")
    assert (second["anthropic-beta"], second["anthropic-version"]) == ("mine", "0")
    for head in (first, second):
        assert (head["user-agent"], head["x-a"]) == ("corp", "b")


async def test_only_an_admitted_agent_is_served() -> None:
    async with service(answering()) as url, relayed(url, **KEY) as agent:
        async with agent.ask() as answer:
            assert answer.status_code == 200
        async with agent.ask(x_api_key="", authorization=f"Bearer {agent.token}") as answer:
            assert answer.status_code == 200
        for wrong in ("", "sk-real", agent.token[:-1]):
            async with agent.ask(x_api_key=wrong) as answer:
                assert answer.status_code == 401
                assert (await answer.aread()).startswith(b'{"type": "error"')
        agent.relay.revoke("agent-1")  # what is asked after an order does not overtake it
        async with agent.ask() as answer:
            assert answer.status_code == 401


async def test_nothing_but_messages_reaches_the_service_and_a_repeated_key_is_hidden() -> None:
    key = "sk-real-0123456789"
    body = b"your key %s is bad" % key.encode()

    async def handle(stream: SocketStream) -> None:
        while True:
            await read_request(stream)
            length = len(body)
            await stream.send(b"HTTP/1.1 401 No\r\ncontent-length: %d\r\n\r\n%s" % (length, body))

    more = {"headers": [("authorization", f"Bearer {key}")], "secrets": [key]}
    async with service(handle) as url, relayed(url, **more) as agent:
        for path in ("/v1/files", "/v1/messages/../files", "/v1/messages/batches", "/", "/v1"):
            async with agent.ask(path) as answer:
                assert answer.status_code == 404, path
        for path in ("/v1/messages?beta=true", "/v1/messages/count_tokens"):
            async with agent.ask(path) as answer:
                text = (await answer.aread()).decode()
            assert (answer.status_code, text) == (401, f"your key {'*' * len(key)} is bad")


async def test_a_key_in_two_pieces_or_in_a_header_is_hidden() -> None:
    key = "sk-real-0123456789"
    begin, end = b"your key %s" % key[:9].encode(), b"%s is bad" % key[9:].encode()

    async def handle(stream: SocketStream) -> None:
        await read_request(stream)
        head = f"HTTP/1.1 401 No\r\nx-key: {key}\r\ncontent-length: {len(begin + end)}\r\n\r\n"
        await stream.send(head.encode() + begin)
        await arrived.wait()
        await stream.send(end)

    arrived = anyio.Event()
    more = {"headers": [("authorization", f"Bearer {key}")], "secrets": [key]}
    async with service(handle) as url, relayed(url, **more) as agent, agent.ask() as answer:
        assert answer.headers["x-key"] == "*" * len(key)
        got = b""
        async for piece in answer.aiter_raw():
            got += piece
            arrived.set()
    assert got.decode() == f"your key {'*' * len(key)} is bad"


async def test_a_piece_arrives_before_the_next_one_is_sent() -> None:
    arrived = [anyio.Event() for _ in range(3)]
    pieces = [b"data: 1\n\n", "data: \u4f60\n\n".encode(), b"data: \x00\xff\n\n"]

    async def handle(stream: SocketStream) -> None:
        await read_request(stream)
        await stream.send(HEAD)
        for piece, event in zip(pieces, arrived, strict=True):
            await stream.send(chunk(piece))
            await event.wait()
        await stream.send(END)

    async with service(handle) as url, relayed(url) as agent, agent.ask() as answer:
        got = b""
        async for piece in answer.aiter_raw():
            got += piece
            arrived[pieces.index(piece)].set()
    assert got == b"".join(pieces)


async def test_an_answer_that_breaks_off_breaks_off_here() -> None:
    async def handle(stream: SocketStream) -> None:
        await read_request(stream)
        await stream.send(HEAD + chunk(b"data: 1\n\n"))

    async with service(handle) as url, relayed(url) as agent:
        with pytest.raises(httpx.RemoteProtocolError):
            await agent.read()
        assert [report.kind for report in agent.reports] == ["not_messages"], "only the first fault"


async def test_the_service_notices_at_once_that_an_agent_left() -> None:
    left = anyio.Event()

    async def handle(stream: SocketStream) -> None:
        await read_request(stream)
        await stream.send(HEAD + chunk(b'data: {"type": "ping"}\n\n'))
        with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await stream.receive()
        left.set()

    async with service(handle) as url, relayed(url) as agent:
        async with agent.ask() as answer:
            await anext(answer.aiter_raw())
        with anyio.fail_after(5):
            await left.wait()
        async with agent.ask("/v1"):  # answered after whatever was to be reported
            assert agent.reports == []


async def test_a_slow_reader_slows_the_service_down() -> None:
    sent = 0

    async def handle(stream: SocketStream) -> None:
        nonlocal sent
        await read_request(stream)
        await stream.send(HEAD)
        while sent < 200_000_000:
            await stream.send(chunk(b"x" * 100_000))
            sent += 100_000

    async with service(handle) as url, relayed(url) as agent, agent.ask():
        before = -1
        while sent != before:
            before = sent
            await anyio.sleep(0.5)
        assert 0 < sent < 100_000_000


async def test_connections_are_used_again_but_neither_old_ones_nor_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[SocketStream] = []

    async def handle(stream: SocketStream) -> None:
        opened.append(stream)
        await answering()(stream)

    async def ask(at_once: int) -> int:
        async with anyio.create_task_group() as tasks:
            for _ in range(at_once):
                tasks.start_soon(read_ok, known)
        return len(opened)

    async with service(handle) as url:
        known = Service(Target(url=url))
        monkeypatch.setattr(upstream, "_IDLE_MOST", 2)
        assert [await ask(3), await ask(2), await ask(3)] == [3, 3, 4]
        monkeypatch.setattr(upstream, "_IDLE_S", 0)
        monkeypatch.setattr(upstream, "_IDLE_MOST", 0)
        assert await ask(1) == 5


async def test_a_kept_connection_that_the_service_closes_meanwhile_fails_no_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    async def handle(stream: SocketStream) -> None:
        while True:
            asked.append((await read_request(stream))[0])
            if len(asked) == 2:
                return
            await stream.send(OK % (2, b"ok"))

    async with service(handle) as url:
        known = Service(Target(url=url))
        await read_ok(known)
        monkeypatch.setattr(upstream, "_IDLE_MOST", 0)
        await read_ok(known)
        assert len(asked) == 3


@pytest.mark.parametrize("arrives", ["with it", "before its end", "unread", "idle"])
async def test_what_comes_after_an_answer_is_not_the_next_one(
    monkeypatch: pytest.MonkeyPatch, arrives: str
) -> None:
    stale, peers = OK % (5, b"STALE"), list[SocketStream]()

    async def handle(stream: SocketStream) -> None:
        peers.append(stream)
        while await read_request(stream):
            await stream.send(OK % (2, b"ok") + (stale if arrives == "with it" else b""))

    def send() -> None:
        os.write(peers[0].extra(SocketAttribute.raw_socket).fileno(), stale)

    async with service(handle) as url:
        known = Service(Target(url=url))
        await read_ok(known, send if arrives == "before its end" else str)
        if arrives in {"unread", "idle"}:
            send()
        if arrives == "idle":
            await until(known._idle[0].writer.is_closing)  # noqa: SLF001
        monkeypatch.setattr(upstream, "_IDLE_MOST", 0)
        await read_ok(known)


async def test_other_programs_take_neither_memory_nor_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    relay, logged, loop = program.Relay(), list[int](), asyncio.get_running_loop()
    monkeypatch.setattr(program, "_MOST_WAITING", 2)
    monkeypatch.setattr(relay, "read_orders", lambda: None)
    head = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n"
    server = await loop.create_server(relay.new_connection, "127.0.0.1", 0)
    place = server.sockets[0].getsockname()
    async with server, asyncio.timeout(5):
        connections = [await asyncio.open_connection(*place) for _ in range(3)]
        assert await connections[0][0].read() == b"", "the oldest one goes"
        connections[1][1].write(head + b"\r\n")
        assert await connections[1][0].read(13) == b"HTTP/1.1 401 ", "without the body"
        monkeypatch.setattr(program, "_HEAD_S", 0.01)
        connections.append(await asyncio.open_connection(*place))
        connections[3][1].write(head)
        assert await connections[3][0].read() == b"", "a head has an end"
        for _, writer in connections:
            writer.close()
    told: Any = SimpleNamespace(default_exception_handler=lambda told: logged.append(told["n"]))
    for number in (errno.EMFILE, errno.EMFILE, errno.EBADF, errno.ENFILE, errno.EBADF):
        relay.take_fault(told, {"exception": OSError(number, ""), "n": number})
    assert logged == [errno.EMFILE, errno.EBADF, errno.EBADF]


async def test_all_addresses_of_a_name_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(connecting: socket.socket, place: tuple[Any, ...]) -> None:
        await (anyio.sleep_forever() if place[0] == "::1" else real(connecting, place))

    def resolve(name: str, port: int, *_: object, **__: object) -> list[tuple[object, ...]]:
        if name == "unknown.example":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        places = (socket.AF_INET6, ("::1", port, 0, 0)), (socket.AF_INET, ("127.0.0.1", port))
        return [(family, socket.SOCK_STREAM, 6, "", place) for family, place in places]

    loop = asyncio.get_running_loop()
    real = loop.sock_connect
    async with service(answering()) as url:
        port = int(url.rpartition(":")[2])
        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        for name, detail in (("unknown", "ENOTFOUND"), ("model", "ECONNREFUSED")):
            with pytest.raises(ServiceUnreachable) as failed:
                await Service(Target(url=f"http://{name}.example:9")).ask(*ASKED)
            assert (failed.value.kind, failed.value.detail) == ("unreachable", detail)
        monkeypatch.setattr(loop, "sock_connect", connect)
        with anyio.fail_after(5):
            answer = await Service(Target(url=f"http://model.example:{port}")).ask(*ASKED)
        answer.abort()


async def test_an_early_answer_to_a_long_request_is_passed_on() -> None:
    refuse, long = say(b"HTTP/1.1 413 No\r\ncontent-length: 3\r\n\r\nbig"), b"x" * 20_000_000
    async with service(refuse) as url, relayed(url) as agent, agent.ask(body=long) as answer:
        assert (answer.status_code, await answer.aread()) == (413, b"big")


async def test_a_service_that_is_not_there_is_reported_and_a_packed_answer_is_not() -> None:
    packed = b"HTTP/1.1 200 OK\r\ncontent-encoding: x\r\ncontent-length: 1\r\n\r\nx"
    async with service(say(packed)) as url, relayed(url) as agent:
        assert (await agent.read(), agent.reports) == (b"x", [])
    async with service(say(b"x" * 200_000)) as proxy:
        endless = ("https://a.example", {"proxy": proxy}, "ECONNRESET")
        for url, more, detail in (endless, ("http://127.0.0.1:9", {}, "ECONNREFUSED")):
            async with relayed(url, **more) as agent:
                with pytest.raises(httpx.RemoteProtocolError):
                    await agent.read()
                (report,) = agent.reports
                assert (report.kind, report.detail) == ("unreachable", detail)


async def test_a_proxy_is_used() -> None:
    heard: list[str] = []
    async with service(answering(heard=heard)) as url:
        proxy = url.replace("//", "//me:pass%20word@")
        async with (
            relayed("http://model.example/base", proxy=proxy) as agent,
            agent.ask() as answer,
        ):
            assert answer.status_code == 200
    lines = heard[0].split("\r\n")
    assert lines[0] == "post http://model.example/base/v1/messages http/1.1"
    assert "host: model.example" in lines
    assert "proxy-authorization: basic bwu6cgfzcyb3b3jk" in lines


async def test_tls_is_verified_and_goes_through_a_proxy(tmp_path: Path) -> None:
    cert, context = await make_certificate(tmp_path)
    secure, tunnels = answering(b"secure"), list[bytes]()

    async def tunnel(stream: SocketStream) -> None:
        tunnels.append(await stream.receive())
        await stream.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        inner: Any = await TLSStream.wrap(
            stream, server_side=True, ssl_context=context, standard_compatible=False
        )
        await secure(inner)

    async with service(secure, context) as place, service(tunnel) as proxy:
        url = place.replace("http://127.0.0.1", "https://localhost")
        async with relayed(url) as agent:
            with pytest.raises(httpx.RemoteProtocolError):
                await agent.read()
            assert agent.reports[0].detail == "CERTIFICATE_VERIFY_FAILED"
        trusted = {"certificates": {"NODE_EXTRA_CA_CERTS": str(cert)}}
        for more in (trusted, {**trusted, "proxy": proxy}):
            async with relayed(url, **more) as agent, agent.ask() as answer:
                assert await answer.aread() == b"secure"
        there = url.removeprefix("https://").encode()
        assert tunnels[0].startswith(b"CONNECT %s HTTP/1.1\r\n" % there)
