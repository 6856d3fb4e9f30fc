"""Another user of the machine, really another one, at a server that has no tokens."""

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest
from starlette.responses import JSONResponse

from gateway.conversations.leases import Node
from gateway.errors import Forbidden
from gateway.http.forwarding import SECRET, TO, NodeGuard
from gateway.http.peers import Endpoint, LocalUsers, PeerGuard, local_users_blocking
from gateway.ids import NodeId
from tests.service.http.stage import assert_error, staged
from tests.service.http.wired import HOST, raw
from tests.support.asgi import served

NOBODY = 65534
STRANGER = dedent(
    """
    import encodings.idna, os, socket, sys  # all before it becomes somebody who may read less
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    host, port, manner = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    request = sys.stdin.buffer.read()
    with socket.create_connection((host, port), timeout=20) as stream:
        stream.sendall(request)
        if manner != "gone":
            while piece := stream.recv(65536):
                sys.stdout.buffer.write(piece)
    """
)
LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="Linux tells whose a socket is"
)
AS_ROOT = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become somebody else"
)


async def ours() -> LocalUsers:
    users = await anyio.to_thread.run_sync(local_users_blocking)
    assert users is not None
    return users


async def send_as_nobody(
    port: int, request: bytes, *, host: str = "127.0.0.1", manner: str = "read"
) -> bytes:
    command = [sys.executable, "-I", "-c", STRANGER, host, str(port), manner]
    with anyio.fail_after(30):
        done = await anyio.run_process(command, input=request, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def request_to(target: str, *headers: str, body: bytes = b"", method: str = "GET") -> bytes:
    head = [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    if body:
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


SAY = request_to("/chat", body=b'{"message": "hi"}', method="POST")


FORWARDED = ("X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1")


@LINUX
@AS_ROOT
async def test_another_user_of_this_machine_is_refused_in_one_sentence(tmp_path: Path) -> None:
    async with staged(tmp_path, local_users=await ours()) as stage, served(stage.app) as port:
        for request in (SAY, request_to("/"), request_to("/conversations", *FORWARDED)):
            head, _, body = (await send_as_nobody(port, request)).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 403 ")
            error = json.loads(body)["error"]
            assert error["code"] == "forbidden"
            assert "user who started the server" in error["message"]
        assert (await stage.client().get("/conversations")).status_code == 403  # no row at all


@LINUX
@AS_ROOT
@pytest.mark.parametrize(
    ("listens_on", "reached_at"), [("127.0.0.1", "::ffff:127.0.0.1"), ("::1", "::1")]
)
async def test_the_other_user_is_known_by_version_6_too(
    tmp_path: Path, listens_on: str, reached_at: str
) -> None:
    async with (
        staged(tmp_path, local_users=await ours()) as stage,
        served(stage.app, host=listens_on) as port,
    ):
        assert b" 403 " in await send_as_nobody(port, request_to("/"), host=reached_at)


@LINUX
@AS_ROOT
async def test_who_sends_and_is_gone_at_once_causes_nothing(tmp_path: Path) -> None:
    """The kernel calls a socket that nobody holds root's; then it is nobody's word."""
    users = await ours()
    async with staged(tmp_path) as stage:
        looked_up = anyio.Event()
        verdicts: list[bool] = []

        async def seen(scope: Any, receive: Any, send: Any) -> None:
            guard = PeerGuard(stage.app, serves_blocking=serves_blocking)
            await guard(scope, receive, send)

        def serves_blocking(peer: Endpoint, own: Endpoint) -> bool:
            verdicts.append(users.serves_blocking(peer, own))
            anyio.from_thread.run_sync(looked_up.set)
            return verdicts[-1]

        async with served(seen) as port:
            await send_as_nobody(port, SAY, manner="gone")
            with anyio.fail_after(30):
                await looked_up.wait()
        assert verdicts == [False]
        assert (await stage.client().read("/conversations"))["conversations"] == []


@LINUX
async def test_the_servers_own_user_is_served_and_looked_up_once_a_connection(
    tmp_path: Path,
) -> None:
    users = await ours()
    asked: list[Endpoint] = []

    def serves_blocking(peer: Endpoint, own: Endpoint) -> bool:
        asked.append(peer)
        return users.serves_blocking(peer, own)

    async with staged(tmp_path) as stage:
        guard = PeerGuard(stage.app, serves_blocking=serves_blocking)

        async def named(scope: Any, receive: Any, send: Any) -> None:
            await guard(scope, receive, send)

        async with served(named) as port:
            for _ in range(2):
                async with raw(port) as client:
                    for _ in range(3):
                        await client.send(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
                        await client.expect()
    assert len(asked) == len(set(asked)) == 2


async def test_with_tokens_a_token_is_what_counts(tmp_path: Path) -> None:
    nobody = LocalUsers(frozenset(), ())
    async with staged(tmp_path, users=("ada",), local_users=nobody) as stage:
        assert (await stage.client("ada").get("/conversations")).status_code == 200
    async with staged(tmp_path, local_users=nobody) as stage:
        assert_error(await stage.client().get("/conversations"), 403, "forbidden")


@pytest.mark.parametrize("secret", ["", "guess"])
async def test_what_only_looks_like_a_request_of_another_server_is_refused(secret: str) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await JSONResponse({})(scope, receive, send)

    node = Node(id=NodeId("here"), incarnation="inc_1", secret="own")
    guard = NodeGuard(PeerGuard(app, serves_blocking=lambda *_: False), node=node)
    transport = httpx.ASGITransport(guard, client=("127.0.0.1", 9))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        with pytest.raises(Forbidden):
            await client.get("/", headers={TO: "inc_2", SECRET: secret})
        forwarded = await client.get("/", headers={TO: "inc_1", SECRET: "own"})
    assert forwarded.status_code == 200


async def test_a_connection_without_an_address_is_refused() -> None:
    async def app(*_: Any) -> None:
        await anyio.lowlevel.checkpoint()
        raise AssertionError

    guard = PeerGuard(app, serves_blocking=lambda *_: True)
    scope: Any = {"type": "http", "state": {}, "client": None, "server": ("127.0.0.1", 1)}
    with pytest.raises(Exception, match="Another user"):
        await guard(scope, lambda: None, lambda _: None)  # type: ignore[arg-type,return-value]
