"""Model services for the relay's tests: they do exactly what a test says, byte by byte."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.tls import TLSListener

from gateway.relay.reports import ServiceReport
from gateway.relay.supervisor import RelayProcess, open_relay
from gateway.relay.upstream import Target

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
Handler = Callable[[SocketStream], Awaitable[None]]


def chunk(data: bytes) -> bytes:
    """Return a piece of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def read_request(stream: SocketStream) -> tuple[str, bytes]:
    """Return a request's head in small letters, and its body."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += await stream.receive()
    return head.decode().lower(), body


def answering(body: bytes = b"ok", heard: list[str] | None = None) -> Handler:
    """Make what answers each request with a body, and keeps the requests' heads if asked to."""

    async def handle(stream: SocketStream) -> None:
        while True:
            head, _ = await read_request(stream)
            if heard is not None:
                heard.append(head)
            await stream.send(OK % (len(body), body))

    return handle


@asynccontextmanager
async def service(handle: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve each connection with `handle` while the block runs; yields the address."""

    async def serve(stream: SocketStream) -> None:
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await handle(stream)

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        secured: Any = TLSListener(listener, tls, standard_compatible=False) if tls else listener
        tasks.start_soon(secured.serve, serve)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        tasks.cancel_scope.cancel()


async def make_certificate(directory: Path, name: str = "localhost") -> tuple[Path, ssl.SSLContext]:
    """Write a certificate for a name, which nobody trusts; return it and its server's context."""
    key, cert = directory / "key.pem", directory / "cert.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext"
    made = ["openssl", *words.split(), f"subjectAltName=DNS:{name}", "-keyout", key, "-out", cert]
    await anyio.run_process(list(map(str, made)))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    return cert, context


class Agent:
    """An admitted agent: its requests, and what the relay reported of them."""

    def __init__(self, relay: RelayProcess, client_id: str = "agent-1") -> None:
        self.relay = relay
        self.reports: list[ServiceReport] = []
        self.token = relay.admit(client_id, self.reports.append)

    @asynccontextmanager
    async def ask(
        self, path: str = "/v1/messages", body: bytes = b"{}", **headers: str
    ) -> AsyncIterator[httpx.Response]:
        """Send a request and yield its response unread."""
        named = {"x-api-key": self.token, **{k.replace("_", "-"): v for k, v in headers.items()}}
        async with (
            httpx.AsyncClient(trust_env=False, verify=False, timeout=20) as http,
            http.stream("POST", self.relay.url + path, content=body, headers=named) as response,
        ):
            yield response

    async def read(self) -> bytes:
        """Send a request and return its response's body."""
        async with self.ask() as response:
            return await response.aread()


@asynccontextmanager
async def relayed(url: str, **more: object) -> AsyncIterator[Agent]:
    """Run a relay before the service at `url`, with one agent."""
    with anyio.fail_after(40):
        async with open_relay(Target(url=url, **more), {}) as relay:  # type: ignore[arg-type]
            yield Agent(relay)
