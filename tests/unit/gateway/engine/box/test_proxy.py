"""The proxy of a box: listed hosts over TLS, and nothing else."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from gateway.engine.box.proxy import Proxy, is_public
from tests.unit.gateway.engine.box.test_client_hello import hello

PUBLIC = "93.184.216.34"


class Outside:
    """What the proxy connects to: addresses by name, and one end of each connection."""

    def __init__(self, addresses: dict[str, Sequence[str]]) -> None:
        self.addresses = addresses
        self.resolved: list[str] = []
        self.connected: list[str] = []
        self.reports: list[tuple[str, str]] = []
        self.servers: list[socket.socket] = []
        self.is_reached = threading.Event()

    def resolve(self, host: str) -> Sequence[str]:
        self.resolved.append(host)
        if host not in self.addresses:
            raise OSError(host)
        return self.addresses[host]

    def connect(self, address: str) -> socket.socket:
        self.connected.append(address)
        ours, theirs = socket.socketpair()
        self.servers.append(theirs)
        self.is_reached.set()
        return ours


@contextmanager
def served(outside: Outside, *hosts: str) -> Iterator[socket.socket]:
    listener = socket.create_server(("127.0.0.1", 0))
    proxy = Proxy(
        listener,
        hosts,
        lambda host, what: outside.reports.append((host, what)),
        resolve=outside.resolve,
        connect=outside.connect,
    )
    proxy.start()
    try:
        with socket.create_connection(listener.getsockname(), timeout=20) as client:
            yield client
    finally:
        proxy.close()
        for server in outside.servers:
            server.close()


def answer_to(client: socket.socket, request: bytes) -> bytes:
    client.sendall(request)
    return client.recv(4096).split(b"\r\n")[0]


def ask(host: str) -> bytes:
    return f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


def test_a_listed_host_is_reached_once_the_client_asks_tls_for_it() -> None:
    outside = Outside({"packages.example.org": [PUBLIC]})
    with served(outside, "packages.example.org") as client:
        assert answer_to(client, ask("packages.example.org:443")).startswith(b"HTTP/1.1 200")
        assert outside.connected == []
        first = hello("packages.example.org")
        client.sendall(first[:50])
        client.sendall(first[50:])
        client.sendall(b"more")
        client.shutdown(socket.SHUT_WR)
        assert outside.is_reached.wait(20)
        server = outside.servers[0]
        received = b""
        while data := server.recv(4096):
            received += data
        assert received == first + b"more"
        server.sendall(b"back")
        server.shutdown(socket.SHUT_WR)
        assert client.recv(4096) == b"back"
    assert (outside.resolved, outside.connected) == (["packages.example.org"], [PUBLIC])
    assert outside.reports == [("packages.example.org", "connected")]


@pytest.mark.parametrize(
    "request_",
    [
        ask("other.org:443"),
        ask("packages.example.org:80"),
        ask("Packages.Example.org:443"),
        ask("packages.example.org.:443"),
        ask("packages.example.org\0.evil.org:443"),
        ask("me@packages.example.org:443"),
        ask(f"{PUBLIC}:443"),
        ask("[::1]:443"),
        ask("evil.org%2f.packages.example.org:443"),
        b"CONNECT packages.example.org:443 HTTP/1.1 \r\n\r\n",
        b"GET https://packages.example.org/ HTTP/1.1\r\nHost: packages.example.org\r\n\r\n",
        b"POST http://127.0.0.1/ HTTP/1.1\r\n\r\n",
        b"\x05\x01\x00\r\n\r\n",
    ],
)
def test_what_is_not_exactly_a_listed_host_is_refused_and_reported(request_: bytes) -> None:
    outside = Outside({"packages.example.org": [PUBLIC]})
    with served(outside, "packages.example.org") as client:
        assert answer_to(client, request_).startswith(b"HTTP/1.1 403")
    assert (outside.resolved, outside.connected) == ([], [])
    assert [what for _, what in outside.reports] == ["not_listed"]


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"], ["10.0.0.1"], ["192.168.1.1"], ["169.254.169.254"], ["100.64.0.1"], ["0.0.0.0"],
        ["::1"], ["fe80::1"], ["fd00::1"], ["::ffff:127.0.0.1"], ["64:ff9b::7f00:1"], ["224.0.0.1"],
        ["2002:7f00:1::"], ["64:ff9b:1::7f00:1"], ["64:ff9b::808:808"], ["::ffff:8.8.8.8"], ["::10.0.0.1"],
        ["fec0::1"], ["168.63.129.16"], ["192.0.0.9"], ["192.88.99.1"], [PUBLIC, "127.0.0.1"], [],
    ],
)  # fmt: skip
def test_a_host_with_an_address_that_is_not_public_is_refused(addresses: Sequence[str]) -> None:
    outside = Outside({"packages.example.org": addresses})
    with served(outside, "packages.example.org") as client:
        assert answer_to(client, ask("packages.example.org:443")).startswith(b"HTTP/1.1 403")
    assert outside.connected == []


def test_a_host_that_cannot_be_resolved_is_refused() -> None:
    outside = Outside({})
    with served(outside, "packages.example.org") as client:
        assert answer_to(client, ask("packages.example.org:443")).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize(
    "first",
    [hello("evil.org"), hello(None), b"GET / HTTP/1.1\r\nHost: evil\r\n\r\n", b"SSH-2.0-x\r\n"],
)
def test_a_client_that_asks_for_another_host_inside_is_cut_before_anything_is_reached(
    first: bytes,
) -> None:
    outside = Outside({"packages.example.org": [PUBLIC]})
    with served(outside, "packages.example.org") as client:
        assert answer_to(client, ask("packages.example.org:443")).startswith(b"HTTP/1.1 200")
        client.sendall(first)
        assert client.recv(4096) == b""
    assert outside.connected == []


def test_public_addresses_are_public() -> None:
    assert all(map(is_public, [PUBLIC, "2606:2800:220:1:248:1893:25c8:1946"]))
    assert not is_public("no address")
