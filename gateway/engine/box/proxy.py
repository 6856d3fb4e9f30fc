"""The one way out of a box: a proxy that connects to listed hosts, and to nothing else.

It takes `CONNECT host:443` with a host exactly as listed, resolves it once, connects only if every
address is a public one, and passes bytes on once the client's first message asks for the same host.
What is inside the encrypted connection is not seen: neither what is sent to a listed host, nor a
request for another name that the same servers answer. A plain request for a host that has a secret
goes out over TLS with it.
"""

import encodings.idna  # noqa: F401  name look-ups load it late, when it may be out of reach
import ipaddress
import re
import socket
import ssl
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final

from gateway.engine.box.client_hello import NoHello, is_complete, server_name
from gateway.engine.box.injection import asked_host, forward_blocking
from policies.web import is_public_address

Report = Callable[[str, str], None]
"""Receives the host (or what was asked for) and what became of it."""
Resolve = Callable[[str], Sequence[str]]
"""Returns the addresses of a host; raises `OSError`."""
Connect = Callable[[str], socket.socket]
"""Connects to port 443 of an address; raises `OSError`."""
Encrypt = Callable[[socket.socket, str], socket.socket]
"""Begins TLS with a host and proves that it is the host; raises `OSError`."""

_CONNECT: Final = re.compile(rb"CONNECT ([a-z0-9.-]{1,253}):443 HTTP/1\.[01]")
"""The first line of a request: lower case, no address, no user, port 443."""
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
_MAX_HEAD: Final = 8192
_MOST_CONNECTIONS: Final = 64
_PATIENCE_S: Final = 30.0
_IDLE_S: Final = 600.0
_SHOWN_CHARS: Final = 100
_CHUNK: Final = 65_536


def resolve(host: str) -> Sequence[str]:
    """Return the addresses of a host."""
    found = socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def connect(address: str) -> socket.socket:
    """Connect to port 443 of an address."""
    return socket.create_connection((address, 443), timeout=_PATIENCE_S)


def encrypt(connection: socket.socket, host: str) -> socket.socket:
    """Begin TLS with a host, whose certificate must be one that the machine trusts."""
    return ssl.create_default_context().wrap_socket(connection, server_hostname=host)


def is_public(address: str) -> bool:
    """Return whether an address is one of the public internet, in which no other one stands."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    is_plain = not isinstance(found, ipaddress.IPv6Address) or found in _UNICAST
    return is_plain and is_public_address(address)


class Proxy:
    """Serves the connections of one box until it is closed."""

    def __init__(
        self,
        listener: socket.socket,
        hosts: Collection[str],
        report: Report,
        *,
        secrets: Mapping[str, tuple[str, str]] | None = None,
        resolve: Resolve = resolve,
        connect: Connect = connect,
        encrypt: Encrypt = encrypt,
    ) -> None:
        self._listener = listener
        self._hosts = frozenset(hosts)
        self._secrets = secrets or {}
        """By host: the header, name and value, that its plain requests get."""
        self._report = report
        self._resolve = resolve
        self._connect = connect
        self._encrypt = encrypt
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._closed = False

    def start(self) -> None:
        """Serve in threads of its own."""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Close every connection."""
        self._closed = True
        with self._lock:
            for connection in (self._listener, *self._open):
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                connection.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._room.acquire(blocking=False):
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _keep(self, one: socket.socket) -> None:
        with self._lock:
            self._open.add(one)
            if self._closed:
                one.close()

    def _serve(self, client: socket.socket) -> None:
        try:
            self._keep(client)
            client.settimeout(_PATIENCE_S)
            self._answer(client)
        except (OSError, NoHello, ValueError):
            pass  # a connection that fails ends, and nothing else
        finally:
            with self._lock:
                self._open.discard(client)
            client.close()
            self._room.release()

    def _answer(self, client: socket.socket) -> None:
        head, rest = _read_head(client)
        line = head.split(b"\r\n", 1)[0]
        plain = asked_host(line)
        host = plain or _asked_host(line)
        if host is None or host not in (self._hosts if plain is None else self._secrets):
            shown = head[:_SHOWN_CHARS].decode("ascii", "backslashreplace")
            self._refuse(client, host or shown, "not_listed")
            return
        addresses = self._addresses(host)
        if not addresses:
            self._refuse(client, host, "no_public_address")
        elif plain is None:
            self._connect_through(client, host, addresses[0], rest)
        else:
            self._forward(client, host, addresses[0], head + b"\r\n\r\n" + rest)

    def _forward(self, client: socket.socket, host: str, address: str, received: bytes) -> None:
        opened: list[socket.socket] = []

        def open_server() -> socket.socket:
            opened.append(self._connect(address))
            self._keep(opened[0])
            opened.append(self._encrypt(opened[0], host))
            self._keep(opened[1])
            for connection in (client, opened[1]):
                connection.settimeout(_IDLE_S)
            self._report(host, "connected_with_secret")
            return opened[1]

        try:
            forward_blocking(client, received, self._secrets[host], open_server)
        finally:
            with self._lock:
                self._open.difference_update(opened)

    def _connect_through(self, client: socket.socket, host: str, address: str, rest: bytes) -> None:
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        hello = rest
        while not is_complete(hello):
            received = client.recv(_CHUNK)
            if not received:
                return
            hello += received
        if server_name(hello) != host.encode():
            self._report(host, "other_server_name")
            return
        server = self._connect(address)
        try:
            self._keep(server)
            self._report(host, "connected")
            server.sendall(hello)
            _pass_on(client, server)
        finally:
            with self._lock:
                self._open.discard(server)
            server.close()

    def _addresses(self, host: str) -> Sequence[str]:
        """Return a host's addresses; none if one of them is not public."""
        try:
            found = self._resolve(host)
        except OSError:
            return ()
        return found if all(map(is_public, found)) else ()

    def _refuse(self, client: socket.socket, what: str, why: str) -> None:
        self._report(what, why)
        client.sendall(
            b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nx-candor: host not allowed\r\n\r\n"
        )


def _read_head(client: socket.socket) -> tuple[bytes, bytes]:
    """Return the head of a request and what came after it."""
    data = b""
    while b"\r\n\r\n" not in data:
        received = client.recv(_CHUNK)
        if not received or len(data) > _MAX_HEAD:
            raise ValueError("no head")
        data += received
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _asked_host(line: bytes) -> str | None:
    found = _CONNECT.fullmatch(line)
    return found[1].decode("ascii") if found else None


def _pass_on(client: socket.socket, server: socket.socket) -> None:
    """Pass bytes in both directions until one side closes or nothing comes for long."""
    for connection in (client, server):
        connection.settimeout(_IDLE_S)
    back = threading.Thread(target=_pump, args=(server, client), daemon=True)
    back.start()
    _pump(client, server)
    back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
