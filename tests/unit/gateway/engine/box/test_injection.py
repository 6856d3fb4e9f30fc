"""What a request with a secret is when it leaves, and what comes back."""

import socket
import threading

import pytest

from gateway.engine.box.injection import asked_host, forward_blocking

SECRET = ("authorization", "Bearer s-4711")
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: keep-alive\r\n\r\nhello"


def forward(request: bytes, answer: bytes = ANSWER, end: bytes = b"END") -> tuple[bytes, bytes]:
    """Return what the host received, and what the client did."""
    client, inside = socket.socketpair()
    outside, host = socket.socketpair()
    for one in (client, host):
        one.settimeout(20)
    received = []

    def serve() -> None:
        data = b""
        while not data.endswith(end):
            data += host.recv(65_536)
        received.append(data)
        host.sendall(answer)
        host.close()

    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    forward_blocking(inside, request, SECRET, lambda: outside)
    inside.close()
    serving.join()
    told = b""
    while data := client.recv(65_536):
        told += data
    client.close()
    return received[0], told


def test_the_secret_takes_the_place_of_what_the_command_sent() -> None:
    received, told = forward(
        b"POST http://git.example.org:80/a?b=1 HTTP/1.1\r\nHost: other.example\r\n"
        b"Authorization: Basic mine\r\nConnection: close, x-hop\r\nX-Hop: 1\r\nX-Kept: 2\r\n"
        b"Proxy-Authorization: 3\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nEND"
    )
    head, _, body = received.partition(b"\r\n\r\n")
    line, *headers = head.lower().split(b"\r\n")
    assert (line, body) == (b"post /a?b=1 http/1.1", b"END")
    assert sorted(headers) == [
        b"authorization: bearer s-4711",
        b"connection: close",
        b"content-length: 3",
        b"host: git.example.org",
        b"x-kept: 2",
    ]
    assert told.startswith(b"HTTP/1.1 200 OK\r\n")
    assert told.endswith(b"\r\n\r\nhello")
    assert b"s-4711" not in told


def test_a_body_in_chunks_and_an_early_answer_arrive() -> None:
    received, told = forward(
        b"POST http://git.example.org/x HTTP/1.1\r\nHost: git.example.org\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n3\r\nEND\r\n0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 403 No\r\ntransfer-encoding: chunked\r\n\r\n"
        b"2\r\nno\r\n0\r\n\r\n",
        end=b"0\r\n\r\n",
    )
    assert b"3\r\nEND\r\n" in received
    assert told.startswith(b"HTTP/1.1 403 No\r\n")
    assert b"2\r\nno\r\n0\r\n\r\n" in told


def test_a_host_that_cannot_be_reached_is_told() -> None:
    client, inside = socket.socketpair()

    def fail() -> socket.socket:
        raise ConnectionRefusedError

    request = b"GET http://git.example.org/ HTTP/1.1\r\nHost: git.example.org\r\n\r\n"
    with client, inside:
        with pytest.raises(ConnectionRefusedError):
            forward_blocking(inside, request, SECRET, fail)
        assert client.recv(4096).startswith(b"HTTP/1.1 502 Bad Gateway\r\n")


def test_what_is_not_http_ends_the_connection() -> None:
    request = b"GET http://git.example.org/ HTTP/1.1\r\nContent-Length: -1\r\n\r\n"
    with pytest.raises(ValueError, match="no HTTP"), socket.socket() as inside:
        forward_blocking(inside, request, SECRET, socket.socket)


@pytest.mark.parametrize(
    "line",
    [
        b"GET http://user@git.example.org/ HTTP/1.1",
        b"GET http://git.example.org:8080/ HTTP/1.1",
        b"GET http://GIT.example.org/ HTTP/1.1",
        b"GET http://git.example.org HTTP/1.1",
        b"GET http://git.example.org/\x00 HTTP/1.1",
        b"GET http://git.example.org/a b HTTP/1.1",
        b"GET https://git.example.org/ HTTP/1.1",
        b"GET / HTTP/1.1",
    ],
)
def test_other_first_lines_name_no_host(line: bytes) -> None:
    assert asked_host(line) is None
    assert asked_host(b"GET http://git.example.org/ HTTP/1.1") == "git.example.org"
