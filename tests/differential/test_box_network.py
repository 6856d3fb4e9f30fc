"""The way out of a box with listed hosts: real programs in it, through the real proxy, to a server of the test's."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.boxes import USERS, Bench, User, box_bench
from tests.support.walls import needs_boxes

pytestmark = needs_boxes

HOST = "allowed.example"
PROXY = "http://127.0.0.1:3128"


class Server:
    """A TLS server on loopback that stands for a host of the internet."""

    def __init__(self, folder: Path) -> None:
        key, cert = folder / "key", folder / "cert"
        words = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=x -addext subjectAltName=DNS:{HOST}"
        made = [*words.split(), "-keyout", str(key), "-out", str(cert)]
        subprocess.run(made, check=True, capture_output=True)
        self.certificate = cert.read_text()
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(cert, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            try:
                with self._context.wrap_socket(connection, server_side=True) as client:
                    client.recv(4096)
                    client.sendall(
                        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello"
                    )
            except OSError:
                continue

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.close()


@contextmanager
def networked(user: User, server: Server) -> Iterator[Bench]:
    """Run a broker for which the listed host has a public address, which is the server of the test."""
    holes = f"""
import socket
from gateway.engine.box.proxy import Proxy
Proxy.__init__.__kwdefaults__["resolve"] = lambda host: ["93.184.216.34"]
Proxy.__init__.__kwdefaults__["connect"] = lambda _: socket.create_connection(("127.0.0.1", {server.port}))
"""
    with box_bench(user, holes=holes, hosts=[HOST]) as bench:
        bench.write("ca.pem", "")
        bench.write("certificate.txt", server.certificate)
        yield bench


@pytest.mark.parametrize("user", USERS)
def test_a_listed_host_is_reached_and_no_other(user: User, server: Server) -> None:
    with networked(user, server) as bench:
        ran = bench.run(f"curl -sS --cacert certificate.txt https://{HOST}/ 2>&1")
        assert (ran.code, ran.output) == (0, "hello")
        python = "import urllib.request as r, ssl; c = ssl.create_default_context(cafile='certificate.txt'); print(r.urlopen('https://{}/', context=c).read())"
        assert bench.run(f'python3 -c "{python.format(HOST)}"').output == "b'hello'\n"
        reached = server.connections
        for line in (
            "curl -sS --cacert certificate.txt https://other.example/",
            f"curl -sS -k https://{HOST}:8443/",
            f"curl -fsS http://{HOST}/",
            f"curl -sS -k --connect-to other.example:443:{HOST}:443 https://other.example/",
            f"curl -sS --noproxy '*' -k --max-time 2 https://{HOST}/",
            f"curl -sS -k --max-time 2 --noproxy '*' https://127.0.0.1:{server.port}/",
            f"curl -sS -k -x {PROXY} https://127.0.0.1:{server.port}/",
            f"exec 3<>/dev/tcp/127.0.0.1/{server.port}",
            "git ls-remote https://other.example/x",
        ):
            assert bench.run(line).code != 0, line
        assert server.connections == reached
        told = [(row["host"], row["what"]) for row in bench.reports() if "host" in row]
        assert told.count((HOST, "connected")) == 2
        assert ("other.example", "not_listed") in told
        assert (HOST, "other_server_name") in told


def test_the_way_out_ends_with_the_command(server: Server) -> None:
    with networked("own", server) as bench:
        bench.run(
            f"nohup sh -c 'sleep 0.3; curl -sk https://{HOST}/ > late.txt' > /dev/null 2>&1 &"
        )
        assert bench.run("sleep 0.5; ls late.txt").code != 0
        assert server.connections == 0 or bench.left_running() == []


def test_without_listed_hosts_there_is_no_proxy() -> None:
    with box_bench() as bench:
        assert bench.run("exec 3<>/dev/tcp/127.0.0.1/3128").code != 0
        assert bench.run("echo $HTTPS_PROXY$https_proxy").output == "\n"
