"""The relay's process: reads orders from standard input, serves agents, reports on standard output.

Each line is a JSON object. The first line has the `Target` and the orders so far, which are carried
out before any agent is served; each other line is an order:

    {"admit": TOKEN, "client": ID}
    {"revoke": TOKEN}
    {"client": ID, "mark": TEXT or null}
    {"client": ID, "held": BOOLEAN}
    {"client": ID, "has_tools": BOOLEAN}
    {"ping": true}

A request with a token that is not admitted gets 401. One of the client that holds the mark is
answered here. Requests of a held client wait; with those of a client without tools the model may
call none. The orders that were written before a request was sent are carried out before it is
served. The lines written are a `ServiceReport` each, with the client's id, and `{}` in answer to a
ping. The end of standard input, which is the end of the server, ends the process.
"""

import asyncio
import contextlib
import errno
import json
import os
import re
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import h11

from gateway.relay.answers import AnswerReader
from gateway.relay.calls import (
    Call,
    Client,
    model_of,
    now,
    origin,
    seconds_to_wait,
    write_line,
)
from gateway.relay.canned import warm_up_answer
from gateway.relay.keys import KeyFilter, KeyMask
from gateway.relay.reports import Kind
from gateway.relay.tool_choice import offer_no_tools
from gateway.relay.upstream import READ_BYTES, Answer, Service, ServiceUnreachable, Target

_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-connection transfer-encoding te trailer upgrade expect".split()
)
_NOT_SENT_ON = _HOP_BY_HOP.union(
    b"x-api-key authorization proxy-authorization accept-encoding host content-length".split()
)
_SERVED = re.compile(rb"/v1/messages(?:/count_tokens)?(?:\?[^#\s]*)?")
"""All that the agent program asks for; the key opens more than that at the service."""
_HEAD_S, _MOST_WAITING = 10.0, 128
"""The time to show a token, and how many connections may wait for it."""
_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})
"""The statuses that clients follow; 300 and 304 are answers."""
_BODILESS = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})
_LOOK_S = 0.5
_SILENT_S = 1.0
"""A pause in an answer is reported after so long, so that answers without pauses cost no report."""


def _error(kind: str, message: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


_NO_TOKEN = _error("authentication_error", "This agent is not admitted.")
_NOT_SERVED = _error("not_found_error", "Agents can only send messages to the model.")
_REDIRECTED = _error("invalid_request_error", "The model's service redirects.")


class _AgentProtocol(asyncio.StreamReaderProtocol):
    """Gives the request up at once when the agent goes away."""

    answer: Answer | None = None
    serving: asyncio.Task[None] | None = None
    has_left = False

    def eof_received(self) -> bool | None:
        self._abort()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._abort()
        super().connection_lost(exc)

    def _abort(self) -> None:
        self.has_left = True
        if self.answer is not None:
            self.answer.abort()
        elif self.serving is not None:  # the service has not answered yet
            self.serving.cancel()


class Relay:
    """Serves agents."""

    def __init__(self) -> None:
        self._service: Service | None = None
        self._reports_calls = False
        self.keys = KeyMask()
        self._clients: dict[str, Client] = {}
        """By their tokens."""
        self.waiting: dict[asyncio.StreamWriter, None] = {}
        """Connections that have shown no token, the oldest first."""
        self._rest = b""
        self._log_at = 0.0

    def read_target(self) -> None:
        """Wait for the first line of standard input and carry it out."""
        while self._service is None:
            self._take_orders(os.read(0, READ_BYTES))
        os.set_blocking(0, False)

    def read_orders(self) -> None:
        """Carry out the orders that were written so far; end the process if no more can come."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self._take_orders(os.read(0, READ_BYTES))

    def _take_orders(self, data: bytes) -> None:
        if not data:
            os._exit(0)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._obey(json.loads(line))

    def _obey(self, order: Mapping[str, Any]) -> None:
        if "target" in order:
            target = Target(**order["target"])
            self._service = Service(target)
            self._reports_calls = target.reports_calls
            self.keys = KeyMask(target.secrets)
            for earlier in order["orders"]:
                self._obey(earlier)
        elif "ping" in order:
            write_line(b"{}\n")
        elif "admit" in order:
            client = Client(order["client"], self._reports_calls)
            client.free.set()
            self._clients[order["admit"]] = client
        elif "revoke" in order:
            self._clients.pop(order["revoke"], None)
        elif named := [known for known in self._clients.values() if known.id == order["client"]]:
            if "mark" in order:
                named[0].mark = order["mark"].encode() if order["mark"] else None
            elif "has_tools" in order:
                named[0].has_tools = order["has_tools"]
            elif order["held"]:
                named[0].free.clear()
            else:
                named[0].free.set()

    def take_fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log a fault of the loop; running out of descriptors, which comes in thousands, once a
        minute.
        """
        if getattr(context.get("exception"), "errno", None) in {errno.EMFILE, errno.ENFILE}:
            if now() < self._log_at:
                return
            self._log_at = now() + 60
        loop.default_exception_handler(context)

    async def watch_silence(self) -> None:
        """Report when the service stops sending content in a call, and when it goes on. Never
        returns.
        """
        while True:
            await asyncio.sleep(_LOOK_S)
            for client in self._clients.values():
                is_asked = client.open_calls and not client.blocked
                silent_s = now() - client.heard_at if is_asked else 0.0
                if client.is_silent == (silent_s < _SILENT_S):
                    client.is_silent = not client.is_silent
                    kind: Kind = "silent" if client.is_silent else "heard"
                    client.report(kind, silent_s=round(silent_s, 1))

    def new_connection(self) -> asyncio.Protocol:
        """Return the protocol of an agent's connection."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.waiting[writer] = None
            if len(self.waiting) > _MOST_WAITING:
                oldest = next(iter(self.waiting))
                del self.waiting[oldest]
                oldest.transport.abort()
            protocol.serving = asyncio.current_task()
            with contextlib.suppress(asyncio.CancelledError):
                await _Conversation(self, protocol, reader, writer).run()

        protocol = _AgentProtocol(asyncio.StreamReader(limit=READ_BYTES), serve)
        return protocol

    def client_of(self, request: h11.Request) -> Client | None:
        """Return the client whose token a request has."""
        named = dict(request.headers)
        bearer = named.get(b"authorization", b"").removeprefix(b"Bearer ")
        token = named.get(b"x-api-key") or bearer
        return self._clients.get(token.decode("latin-1"))

    async def ask(self, request: h11.Request, body: bytes) -> Answer:
        """Send a request of an agent on."""
        headers = [(name, value) for name, value in request.headers if name not in _NOT_SENT_ON]
        headers.append((b"accept-encoding", b"identity"))  # so that answers can be read here
        assert self._service is not None
        return await self._service.ask(request.method, request.target, headers, body)


@dataclass(slots=True, eq=False)
class _Conversation:
    """One connection of an agent, request after request."""

    _relay: Relay
    _protocol: _AgentProtocol
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    _state: h11.Connection = field(
        default_factory=lambda: h11.Connection(h11.SERVER, max_incomplete_event_size=READ_BYTES)
    )

    async def run(self) -> None:
        state = self._state
        try:
            while True:
                async with asyncio.timeout(
                    _HEAD_S if self._writer in self._relay.waiting else None
                ):
                    request = await self._next()
                self._relay.read_orders()
                client = self._relay.client_of(request)
                if client is None:
                    await self._answer(HTTPStatus.UNAUTHORIZED, "application/json", _NO_TOKEN)
                    self._writer.write_eof()
                    async with asyncio.timeout(_HEAD_S):  # a reset would lose the answer
                        await self._reader.readexactly(READ_BYTES)
                    break
                self._relay.waiting.pop(self._writer, None)
                pieces: list[bytes] = []
                while isinstance(event := await self._next(), h11.Data):
                    pieces.append(bytes(event.data))
                body = b"".join(pieces)
                if request.method != b"POST" or not _SERVED.fullmatch(request.target):
                    await self._answer(HTTPStatus.NOT_FOUND, "application/json", _NOT_SERVED)
                elif client.mark is not None and client.mark in body:
                    await self._answer(HTTPStatus.OK, "text/event-stream", warm_up_answer(body))
                else:
                    await client.free.wait()
                    wanted = body if client.has_tools else offer_no_tools(body)
                    await self._exchange(Call(client, request.target), request, wanted, body)
                if not state.our_state is state.their_state is h11.DONE:
                    break
                state.start_next_cycle()
        except (OSError, EOFError, h11.ProtocolError):
            pass  # the agent went away, or the answer was cut: so is this connection
        finally:
            self._relay.waiting.pop(self._writer, None)
            if state.our_state is h11.SEND_BODY:
                self._writer.transport.abort()
            self._writer.close()

    async def _next(self) -> Any:
        """Return the next part of a request. Raise `EOFError` if there is none."""
        while (event := self._state.next_event()) is h11.NEED_DATA:
            self._state.receive_data(await self._reader.read(READ_BYTES))
        if isinstance(event, h11.Request | h11.Data | h11.EndOfMessage):
            return event
        raise EOFError

    async def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        headers = [("content-type", content_type), ("content-length", str(len(body)))]
        head = h11.Response(status_code=status, headers=headers)
        await self._send(head, h11.Data(data=body), h11.EndOfMessage())

    async def _exchange(self, call: Call, request: h11.Request, wanted: bytes, body: bytes) -> None:
        """Get an answer to a request; `body` is sent in the place of `wanted` if the service does
        not know the latter.
        """
        with call:
            call.asked_model = model_of(body) if call.is_told else ""
            try:
                answer = await self._relay.ask(request, wanted)
                if answer.status == HTTPStatus.BAD_REQUEST and wanted != body:
                    answer.abort()
                    answer = await self._relay.ask(request, body)
            except ServiceUnreachable as exc:
                call.report(exc.kind, detail=exc.detail)
                self._writer.transport.abort()
                raise EOFError from exc
            self._protocol.answer, call.status = answer, answer.status
            try:
                await self._pass_on(call, answer)
            except (OSError, h11.ProtocolError) as exc:
                answer.abort()
                if not self._protocol.has_left:
                    call.report("cut", detail="ECONNRESET")
                raise EOFError from exc
            except Exception:  # of an answer that nobody thought of: it ends this call alone
                answer.abort()
                call.report("not_messages")
                raise
            finally:
                self._protocol.answer = None

    async def _pass_on(self, call: Call, answer: Answer) -> None:
        keys, shown = KeyFilter(self._relay.keys), self._relay.keys.hidden
        received = [(name, shown(value)) for name, value in answer.headers]
        named = {name: value.decode("latin-1") for name, value in received}
        if answer.status in _REDIRECTIONS:
            # the agent would take the conversation there by itself
            answer.abort()
            place = origin(named.get(b"location", ""))
            call.report("redirected", status=answer.status, detail=place)
            await self._answer(HTTPStatus.BAD_REQUEST, "application/json", _REDIRECTED)
            return
        is_success = answer.status < HTTPStatus.MULTIPLE_CHOICES
        if not is_success:
            wait_s = seconds_to_wait(named.get(b"retry-after", ""))
            call.report("refused", status=answer.status, retry_after_s=wait_s)
        is_plain = named.get(b"content-encoding", "identity") == "identity"
        is_read = is_plain and call.is_message and is_success
        content_type = named.get(b"content-type", "")
        reader = AnswerReader(content_type, takes_figures=call.is_told) if is_read else None
        call.reader = reader
        dropped = _HOP_BY_HOP | ({b"content-length"} if reader and reader.may_change else set())
        headers = [(name, value) for name, value in received if name not in dropped]
        has_length = any(name == b"content-length" for name, _ in headers)
        if not has_length and answer.status not in _BODILESS:
            headers.append((b"transfer-encoding", b"chunked"))
        pending: list[h11.Event] = [h11.Response(status_code=answer.status, headers=headers)]
        async for piece in answer.chunks():
            if data := keys.take(reader.take(piece) if reader else piece):
                pending.append(h11.Data(data=data))
            if reader is None or reader.has_content:
                call.hear()
            call.report_answer()  # before the agent has it, and can go on
            await self._send(*pending, call=call)
            pending.clear()
        rest = keys.take(reader.end() if reader else b"") + keys.end()
        call.report_answer()
        call.end(is_whole=True)
        await self._send(h11.Data(data=rest), h11.EndOfMessage())

    async def _send(self, *events: h11.Event, call: Call | None = None) -> None:
        self._writer.write(b"".join(self._state.send(event) or b"" for event in events))
        if call is not None and self._writer.transport.get_write_buffer_size():
            with call.blocked():
                await self._writer.drain()
        else:
            await self._writer.drain()


async def _serve(listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    relay = Relay()
    relay.read_target()
    loop.add_reader(0, relay.read_orders)
    loop.set_exception_handler(relay.take_fault)
    server = await loop.create_server(relay.new_connection, sock=listener)
    async with server:
        await relay.watch_silence()


def main(descriptor: int) -> None:
    """Serve on a listening socket that the server passed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a service manager's: turns still finish
    os.set_blocking(1, False)
    with socket.socket(fileno=descriptor) as listener:
        asyncio.run(_serve(listener))
