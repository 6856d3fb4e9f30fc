"""Connections to the model's service: TLS, the environment's proxy, reuse of idle connections."""

import asyncio
import base64
import errno
import re
import select
import socket
import ssl
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

import certifi
import h11

from gateway.errors import SettingsError
from gateway.relay.reports import Kind

READ_BYTES = 262_144
"""A request with the whole context arrives in few steps."""
_CONNECT_S = 30.0
_PORTS = {"http": 80, "https": 443}
_HTTP_OK = 200
_IDLE_MOST = 32
_IDLE_S = 60.0
"""Shorter than services keep idle connections, so that a request rarely meets a closed one."""

Headers = list[tuple[bytes, bytes]]


class ServiceUnreachable(Exception):
    """No answer began."""

    def __init__(self, exc: Exception, beginning: bytes = b"") -> None:
        no_http = beginning != b"HTTP/"[: len(beginning)]
        self.kind: Kind = "not_messages" if no_http else "unreachable"
        self.detail = "" if no_http else _reason(exc)
        """Why, such as ECONNREFUSED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where the model's service is, and what requests to it get."""

    url: str
    proxy: str | None = None
    headers: Sequence[Sequence[str]] = ()
    """Added to each request: the credential and the operator's own."""
    secrets: Sequence[str] = ()
    """Hidden where the service repeats them."""
    certificates: Mapping[str, str] = field(default_factory=dict)
    """The agent program's variables for further certificates, by name."""
    reports_calls: bool = False
    """Each call is reported when it has ended; see `ModelCall`."""


class _Connection(asyncio.StreamReaderProtocol):
    """One connection to the service, for one request after another."""

    writer: asyncio.StreamWriter
    kept_at = 0.0
    is_idle = False
    """Between two requests; what arrives then would answer another agent's request and ends it."""
    unread = 0
    """Bytes that the reader holds."""
    beginning = b""
    """The first five bytes of the response."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader()
        super().__init__(self.reader)
        self.state = h11.Connection(h11.CLIENT, max_incomplete_event_size=READ_BYTES)

    def data_received(self, data: bytes) -> None:
        self.unread += len(data)
        super().data_received(data)
        if self.is_idle:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        # an answer that came before the request was sent whole can still be read
        super().connection_lost(None if isinstance(exc, ConnectionError) else exc)

    def has_more(self) -> bool:
        """Return whether a request is being sent, or anything came after the response, be it the
        end.
        """
        transport, unread = self.writer.transport, self.unread or self.state.trailing_data[0]
        if unread or transport.is_closing() or transport.get_write_buffer_size():
            return True
        poll = select.poll()  # the loop may not have looked yet
        poll.register(self.writer.get_extra_info("socket"), select.POLLIN)
        return bool(poll.poll(0))

    async def read(self) -> bytes:
        data = await self.reader.read(READ_BYTES)
        self.unread -= len(data)
        return data

    async def event(self) -> h11.Event | type[h11.PAUSED]:
        """Return the next event of the response."""
        while True:
            event = self.state.next_event()
            if event is not h11.NEED_DATA:
                return event  # type: ignore[return-value]  # never NEED_DATA
            data = await self.read()
            self.beginning = (self.beginning + data[:5])[:5]
            self.state.receive_data(data)

    def close(self) -> None:
        self.writer.transport.abort()


class Answer:
    """The service's response; read `chunks` to the end, or `abort`."""

    def __init__(self, service: "Service", connection: _Connection, head: h11.Response) -> None:
        self.status = head.status_code
        self.headers: Headers = list(head.headers)
        self._service = service
        self._connection = connection

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, first what came with the head (may be empty).

        Raise `OSError` or `h11.ProtocolError` if the connection broke, or the response is not HTTP.
        """
        connection = self._connection
        while True:
            pieces: list[bytes] = []
            while isinstance(event := connection.state.next_event(), h11.Data):
                pieces.append(bytes(event.data))
            yield b"".join(pieces)
            if event is not h11.NEED_DATA:
                break
            connection.state.receive_data(await connection.read())
        self._service.keep(connection)

    def abort(self) -> None:
        """Close the connection, also in the middle of the response."""
        self._connection.close()


class Service:
    """The model's service at one address."""

    def __init__(self, target: Target) -> None:
        self._url = urlsplit(target.url)
        self._proxy = urlsplit(target.proxy) if target.proxy else None
        schemes = {self._url.scheme, self._proxy.scheme if self._proxy else ""}
        self._tls = tls_context(target.certificates) if "https" in schemes else None
        self._added = [(name.lower().encode(), value.encode()) for name, value in target.headers]
        if self._proxy is not None and self._url.scheme == "http":
            credential = _proxy_credential(self._proxy)
            self._added += [(b"proxy-authorization", credential)] if credential else []
        self._idle: list[_Connection] = []

    async def ask(self, method: bytes, path: bytes, headers: Headers, body: bytes) -> Answer:
        """Send a request and return its answer once its head is there.

        A kept connection that the service closes meanwhile says nothing of it, so another one is
        tried. Raise `ServiceUnreachable` if no answer began.
        """
        while True:
            connection = await self._connect()
            connection.beginning = b""
            try:
                return await self._ask(connection, method, path, headers, body)
            except (OSError, h11.ProtocolError, EOFError) as exc:
                connection.close()
                was_kept = connection.kept_at > 0
                if connection.beginning or not was_kept:
                    raise ServiceUnreachable(exc, connection.beginning) from exc
            except BaseException:
                connection.close()
                raise

    async def _ask(
        self, connection: _Connection, method: bytes, path: bytes, headers: Headers, body: bytes
    ) -> Answer:
        merged = dict(headers)
        for name, value in self._added:
            if name == b"anthropic-beta" and name in merged:
                merged[name] += b"," + value
            elif name == b"user-agent":  # the agent program lets this one be replaced
                merged[name] = value
            else:
                merged.setdefault(name, value)
        target = self._url.path.rstrip("/").encode() + path
        if self._proxy is not None and self._url.scheme == "http":
            target = f"http://{_host_of(self._url)}".encode() + target
        request = h11.Request(
            method=method,
            target=target,
            headers=[
                (b"host", _host_of(self._url).encode()),
                *merged.items(),
                (b"content-length", str(len(body)).encode()),
            ],
        )
        sent = [
            connection.state.send(part) for part in (request, h11.Data(body), h11.EndOfMessage())
        ]
        connection.writer.write(b"".join(part or b"" for part in sent))
        event = await connection.event()
        while isinstance(event, h11.InformationalResponse):
            event = await connection.event()
        if isinstance(event, h11.Response):
            return Answer(self, connection, event)
        raise EOFError("the service closed the connection")

    def keep(self, connection: _Connection) -> None:
        """Take back a connection whose response has been read."""
        state = connection.state
        if state.our_state is state.their_state is h11.DONE and not connection.has_more():
            state.start_next_cycle()
            connection.kept_at, connection.is_idle = time.monotonic(), True
            self._idle.append(connection)
        else:
            connection.close()
        while len(self._idle) > _IDLE_MOST:
            self._idle.pop(0).close()

    async def _connect(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            connection.is_idle = False
            if time.monotonic() < connection.kept_at + _IDLE_S and not connection.has_more():
                return connection
            connection.close()
        try:
            async with asyncio.timeout(_CONNECT_S):
                return await self._open()
        except (
            OSError,
            EOFError,
            asyncio.LimitOverrunError,
        ) as exc:  # OSError is of TLS and time, too
            raise ServiceUnreachable(exc) from exc

    async def _open(self) -> _Connection:
        proxy, host = self._proxy, self._url.hostname or ""
        near, loop, connection = proxy or self._url, asyncio.get_running_loop(), _Connection()
        transport, _ = await loop.create_connection(
            lambda: connection,
            *(near.hostname or "", _port_of(near)),
            ssl=self._tls if near.scheme == "https" else None,
            happy_eyeballs_delay=0.25,
        )
        reader = connection.reader
        connection.writer = writer = asyncio.StreamWriter(transport, connection, reader, loop)
        if proxy is not None and self._url.scheme == "https":
            there = f"{host}:{_port_of(self._url)}"
            lines = [f"CONNECT {there} HTTP/1.1".encode(), f"Host: {there}".encode()]
            if credential := _proxy_credential(proxy):
                lines.append(b"Proxy-Authorization: " + credential)
            writer.write(b"\r\n".join([*lines, b"", b""]))
            head = await reader.readuntil(b"\r\n\r\n")
            if head.split(None, 2)[1:2] != [str(_HTTP_OK).encode()]:
                writer.transport.abort()
                raise OSError(f"the proxy answered {head.splitlines()[0][:99].decode('latin-1')}")
            assert self._tls is not None
            connection.unread = 0
            await writer.start_tls(self._tls, server_hostname=host)
        return connection


def _reason(exc: Exception) -> str:
    """Return the short name of a failure, as the agent program's own messages have it."""
    match exc:
        case TimeoutError():
            return "ETIMEDOUT"
        case ssl.SSLError():
            return exc.reason or "SSL_ERROR"
        case socket.gaierror():
            return "ENOTFOUND"
        case OSError(errno=int(number)):
            return errno.errorcode.get(number, "ECONNRESET")
        case OSError():
            # asyncio joins the failures of several addresses into one text
            numbers = re.findall(r"\[Errno (\d+)\]", str(exc))
            return errno.errorcode.get(int(numbers[-1]), "") if numbers else str(exc)
        case _:
            return "ECONNRESET"


def _port_of(url: SplitResult) -> int:
    return url.port or _PORTS[url.scheme]


def _host_of(url: SplitResult) -> str:
    return url.netloc.rpartition("@")[2]


def _proxy_credential(proxy: SplitResult) -> bytes:
    if proxy.username is None:
        return b""
    words = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return b"Basic " + base64.b64encode(words.encode())


def tls_context(certificates: Mapping[str, str]) -> ssl.SSLContext:
    """Return a context that trusts the system, the same list as browsers, and what the variables
    name.

    Raise `StartError` if a file cannot be used.
    """
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    context.load_verify_locations(certifi.where())
    name = "NODE_EXTRA_CA_CERTS"
    try:
        if name in certificates:
            context.load_verify_locations(certificates[name])
        name = "CLAUDE_CODE_CLIENT_CERT"
        if name in certificates:
            context.load_cert_chain(
                certificates[name],
                certificates.get("CLAUDE_CODE_CLIENT_KEY"),
                certificates.get("CLAUDE_CODE_CLIENT_KEY_PASSPHRASE", ""),  # None would ask for it
            )
    except OSError as exc:
        why = f"cannot be used ({exc.strerror or exc}). Name a readable PEM file, or unset it."
        raise SettingsError(f"{name}={certificates[name]} {why}") from exc
    return context
