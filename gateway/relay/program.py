"""The relay's process: reads orders from standard input, serves agents, reports on standard output.

Each line is a JSON object. The first one read has the `Target` and the orders so far, which are carried out
before any agent is served; the others are one order each:

    {"admit": TOKEN, "client": ID}
    {"revoke": TOKEN}
    {"client": ID, "mark": TEXT or null}

A request with a token that is not admitted gets 401. One of the client that holds the mark is answered here. The lines written are a `ServiceReport` each, with the
client's id. The end of standard input, which is the end of the server, ends the process.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import h11

from gateway.relay.answers import AnswerReader
from gateway.relay.canned import warm_up_answer
from gateway.relay.upstream import READ_BYTES, Answer, Headers, Service, ServiceUnreachable, Target

_HOP_BY_HOP = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"te"),
        *(b"trailer", b"upgrade", b"expect"),
    }
)
_NOT_SENT_ON = _HOP_BY_HOP | {b"x-api-key", b"authorization", b"accept-encoding"}
_SERVED = re.compile(rb"/v1/messages(?:/count_tokens)?(?:\?[^#\s]*)?")
"""All that the agent program asks for; the key opens more than that at the service."""
_SHORTEST_KEY = 8


def _error(kind: str, message: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


_NO_TOKEN = _error("authentication_error", "This agent is not admitted.")
_NOT_SERVED = _error("not_found_error", "Agents can only send messages to the model.")


class _AgentProtocol(asyncio.StreamReaderProtocol):
    """Gives the request up at once when the agent goes away."""

    answer: Answer | None = None
    serving: asyncio.Task[None] | None = None

    def eof_received(self) -> bool | None:
        self._abort()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._abort()
        super().connection_lost(exc)

    def _abort(self) -> None:
        if self.answer is not None:
            self.answer.abort()
        elif self.serving is not None:  # the service has not answered yet
            self.serving.cancel()


class Relay:
    """Serves agents."""

    def __init__(self, target: Target) -> None:
        self._service = Service(target)
        keys = [value.removeprefix("Bearer ") for _, value in target.headers]
        self._keys = [key.encode() for key in keys if len(key) >= _SHORTEST_KEY]
        self._clients: dict[str, str] = {}
        self.marks: dict[str, bytes] = {}
        """By client: the warm-up prompt that is answered here."""

    def obey(self, order: Mapping[str, Any]) -> None:
        """Carry out an order of the server."""
        if "admit" in order:
            self._clients[order["admit"]] = order["client"]
        elif "revoke" in order:
            self.marks.pop(self._clients.pop(order["revoke"], ""), None)
        elif order["mark"]:
            self.marks[order["client"]] = order["mark"].encode()
        else:
            self.marks.pop(order["client"], None)

    def new_connection(self) -> asyncio.Protocol:
        """Return the protocol of an agent's connection."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            protocol.serving = asyncio.current_task()
            with contextlib.suppress(asyncio.CancelledError):
                await _Conversation(self, protocol, reader, writer).run()

        protocol = _AgentProtocol(asyncio.StreamReader(), serve)
        return protocol

    def client_of(self, headers: Headers) -> str | None:
        """Return the client whose token a request has."""
        named = dict(headers)
        bearer = named.get(b"authorization", b"").removeprefix(b"Bearer ")
        token = named.get(b"x-api-key") or bearer
        return self._clients.get(token.decode("latin-1"))

    async def ask(self, request: h11.Request, body: bytes) -> Answer:
        """Send a request of an agent on."""
        headers = [(name, value) for name, value in request.headers if name not in _NOT_SENT_ON]
        headers.append((b"accept-encoding", b"identity"))  # so that answers can be read here
        return await self._service.ask(request.method, request.target, headers, body)

    def hide_keys(self, data: bytes) -> bytes:
        """Return a part of an answer without the keys that the service repeats in it; the length stays."""
        for key in self._keys:
            data = data.replace(key, b"*" * len(key))
        return data

    @staticmethod
    def report(client: str, kind: str, **fields: Any) -> None:
        """Report to the server; a server that does not read loses reports and delays nothing."""
        line = json.dumps({"client": client, "kind": kind, **fields}) + "\n"
        with contextlib.suppress(BlockingIOError):
            os.write(1, line.encode())  # whole or not at all: it is short


class _Conversation:
    """One connection of an agent, request after request."""

    def __init__(
        self,
        relay: Relay,
        protocol: _AgentProtocol,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._relay = relay
        self._protocol = protocol
        self._reader = reader
        self._writer = writer
        self._state = h11.Connection(h11.SERVER, max_incomplete_event_size=READ_BYTES * 4)

    async def run(self) -> None:
        state = self._state
        try:
            while True:
                request, body = await self._read()
                client = self._relay.client_of(list(request.headers))
                mark = self._relay.marks.get(client or "")
                if client is None:
                    await self._answer(HTTPStatus.UNAUTHORIZED, "application/json", _NO_TOKEN)
                elif request.method != b"POST" or not _SERVED.fullmatch(request.target):
                    await self._answer(HTTPStatus.NOT_FOUND, "application/json", _NOT_SERVED)
                elif mark is not None and mark in body:
                    await self._answer(HTTPStatus.OK, "text/event-stream", warm_up_answer(body))
                else:
                    await self._exchange(client, request, body)
                if not state.our_state is state.their_state is h11.DONE:
                    break
                state.start_next_cycle()
        except (OSError, EOFError, h11.ProtocolError):
            pass  # the agent went away, or the answer was cut: so is this connection
        finally:
            if state.our_state is h11.SEND_BODY:
                self._writer.transport.abort()
            self._writer.close()

    async def _read(self) -> tuple[h11.Request, bytes]:
        """Return the next request.

        Raises:
            EOFError: there is none.
        """
        request: h11.Request | None = None
        body: list[bytes] = []
        while True:
            match event := self._state.next_event():
                case h11.NEED_DATA:
                    self._state.receive_data(await self._reader.read(READ_BYTES))
                case h11.Request():
                    request = event
                case h11.Data():
                    body.append(bytes(event.data))
                case h11.EndOfMessage() if request is not None:
                    return request, b"".join(body)
                case _:
                    raise EOFError

    async def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        headers = [("content-type", content_type), ("content-length", str(len(body)))]
        head = h11.Response(status_code=status, headers=headers)
        await self._send(head, h11.Data(data=body), h11.EndOfMessage())

    async def _exchange(self, client: str, request: h11.Request, body: bytes) -> None:
        try:
            answer = await self._relay.ask(request, body)
        except ServiceUnreachable as exc:
            self._relay.report(client, "unreachable", detail=str(exc))
            self._writer.transport.abort()
            raise EOFError from exc
        self._protocol.answer = answer
        try:
            await self._pass_on(client, request, answer)
        except (OSError, h11.ProtocolError) as exc:
            if not self._writer.is_closing():  # else the agent left
                self._relay.report(client, "cut", detail="ECONNRESET")
            raise EOFError from exc
        finally:
            self._protocol.answer = None

    async def _pass_on(self, client: str, request: h11.Request, answer: Answer) -> None:
        named = {name: value.decode("latin-1") for name, value in answer.headers}
        if answer.status >= HTTPStatus.BAD_REQUEST:
            wait = named.get(b"retry-after", "")
            wait_s = float(wait) if wait.isdecimal() else None
            self._relay.report(client, "refused", status=answer.status, retry_after_s=wait_s)
        is_read = b"/messages" in request.target and answer.status == HTTPStatus.OK
        reader = AnswerReader(named.get(b"content-type", "")) if is_read else None
        dropped = _HOP_BY_HOP | ({b"content-length"} if reader and reader.may_change else set())
        headers = [(name, value) for name, value in answer.headers if name not in dropped]
        if not any(name == b"content-length" for name, _ in headers):
            headers.append((b"transfer-encoding", b"chunked"))
        pending: list[h11.Event] = [h11.Response(status_code=answer.status, headers=headers)]
        async for received in answer.chunks():
            chunk = self._relay.hide_keys(received)
            if data := reader.take(chunk) if reader else chunk:
                pending.append(h11.Data(data=data))
            await self._send(*pending)
            pending.clear()
        await self._send(h11.Data(data=reader.end() if reader else b""), h11.EndOfMessage())
        if reader is not None and reader.fault is not None:
            self._relay.report(client, reader.fault)

    async def _send(self, *events: h11.Event) -> None:
        self._writer.write(b"".join(self._state.send(event) or b"" for event in events))
        await self._writer.drain()


def _read_orders(relay: Relay, loop: asyncio.AbstractEventLoop) -> None:
    for line in sys.stdin:
        loop.call_soon_threadsafe(relay.obey, json.loads(line))
    os._exit(0)


async def _serve(listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    first = json.loads(sys.stdin.readline())
    relay = Relay(Target(**first["target"]))
    for order in first["orders"]:
        relay.obey(order)
    threading.Thread(target=_read_orders, args=(relay, loop), daemon=True).start()
    server = await loop.create_server(relay.new_connection, sock=listener)
    await server.serve_forever()


def main(descriptor: int) -> None:
    """Serve on a listening socket that the server passed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a service manager's: turns still finish
    os.set_blocking(1, False)
    with socket.socket(fileno=descriptor) as listener:
        asyncio.run(_serve(listener))
