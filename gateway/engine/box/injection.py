"""Sends one plain request of a box on over TLS, with the secret that its host asks for.

The box speaks HTTP to the proxy, and the proxy HTTPS to the host. So the secret is outside of the
box, and no certificate authority of our own is needed in it.
"""

import re
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import h11

_ASKED: Final = re.compile(rb"[A-Z]{1,20} http://([a-z0-9.-]{1,253})(?::80)?(/[!-~]*) HTTP/1\.[01]")
"""The first line of a request: lower case, no address, no user, port 80."""
_HOP_BY_HOP: Final = frozenset(
    {
        *(b"connection", b"expect", b"host", b"keep-alive", b"te", b"trailer", b"upgrade"),
        *(b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"),
    }
)
"""RFC 9110, 7.6.1; and what the proxy says itself."""
_LAST: Final = (b"connection", b"close")
_EMPTY: Final = (b"content-length", b"0")
_CHUNK: Final = 65_536

Headers = list[tuple[bytes, bytes]]


def asked_host(line: bytes) -> str | None:
    """Return the host that the first line of a plain request names; None if it is none."""
    found = _ASKED.fullmatch(line)
    return found[1].decode("ascii") if found else None


def forward_blocking(
    client: socket.socket,
    received: bytes,
    secret: tuple[str, str],
    open_server: Callable[[], socket.socket],
) -> None:
    """Forward the request that begins with `received`, and its answer; then the connection is done.

    `secret` is a header: name and value. `open_server` connects to the host, over TLS. Raise
    `OSError` if a side is gone, and `ValueError` if one of them does not speak HTTP.
    """
    try:
        _forward_blocking(client, received, secret, open_server)
    except h11.ProtocolError as exc:
        raise ValueError("no HTTP") from exc


def _forward_blocking(
    client: socket.socket,
    received: bytes,
    secret: tuple[str, str],
    open_server: Callable[[], socket.socket],
) -> None:
    inside = h11.Connection(h11.SERVER)
    inside.receive_data(received)
    request = _next(inside, client)
    if not isinstance(request, h11.Request):
        return
    _, _, host, path = request.target.split(b"/", 3)
    name, value = (text.encode() for text in secret)
    own = [(b"host", host.removesuffix(b":80")), (name, value), _LAST]
    try:
        server = open_server()
    except OSError:
        refused = h11.Response(status_code=502, reason=b"Bad Gateway", headers=[_LAST, _EMPTY])
        client.sendall(inside.send(refused) or b"")
        raise
    try:
        outside = h11.Connection(h11.CLIENT)
        headers = _kept(request.headers, but=name) + own
        asked = h11.Request(method=request.method, target=b"/" + path, headers=headers)
        server.sendall(outside.send(asked) or b"")
        with suppress(OSError):  # a host may answer before it has read everything
            _copy_body(inside, client, outside, server)
        answer = _next(outside, server)
        while isinstance(answer, h11.InformationalResponse):
            answer = _next(outside, server)
        if isinstance(answer, h11.Response):
            headers = [*_kept(answer.headers), _LAST]
            told = h11.Response(
                status_code=answer.status_code, reason=answer.reason, headers=headers
            )
            client.sendall(inside.send(told) or b"")
            _copy_body(outside, server, inside, client)
    finally:
        server.close()


def _copy_body(
    source: h11.Connection, origin: socket.socket, target: h11.Connection, to: socket.socket
) -> None:
    while not isinstance(event := _next(source, origin), h11.EndOfMessage):
        if not isinstance(event, h11.Data):
            return
        to.sendall(target.send(h11.Data(data=event.data)) or b"")
    to.sendall(target.send(h11.EndOfMessage()) or b"")


def _next(source: h11.Connection, origin: socket.socket) -> object:
    while (event := source.next_event()) is h11.NEED_DATA:
        if source.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            origin.sendall(source.send(go_on) or b"")
        source.receive_data(origin.recv(_CHUNK))
    return event


def _kept(headers: Sequence[tuple[bytes, bytes]], but: bytes = b"") -> Headers:
    """Return the headers that are passed on; those of one connection alone are not."""
    named = {
        word.strip().lower()
        for name, value in headers
        if name == b"connection"
        for word in value.split(b",")
    }
    return [(name, value) for name, value in headers if name not in _HOP_BY_HOP | named | {but}]
