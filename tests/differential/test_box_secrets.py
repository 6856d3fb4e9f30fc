"""A secret for a host: git in a box pushes with it over HTTPS, and nothing in the box can read it."""

import os
import ssl
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.boxes import USERS, Bench, User, box_bench
from tests.support.walls import needs_boxes

pytestmark = needs_boxes

HOST, PLAIN = "code.example", "other.example"
PASSWORD = "s3cret-of-the-host"
BASIC = "Basic " + b64encode(f"agent:{PASSWORD}".encode()).decode()


class GitHost:
    """A server of git repositories over HTTPS that takes one password."""

    def __init__(self, folder: Path) -> None:
        self.repository = folder / "team.git"
        init = ["git", "init", "-q", "--bare", "-b", "main", str(self.repository)]
        subprocess.run(init, check=True)
        allow = ["git", "-C", str(self.repository), "config", "http.receivepack", "true"]
        subprocess.run(allow, check=True)
        self.certificate, key = folder / "cert.pem", folder / "key.pem"
        words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=x -addext"
        names = f"subjectAltName=DNS:{HOST},DNS:{PLAIN}"
        made = [*words.split(), names, "-keyout", str(key), "-out", str(self.certificate)]
        subprocess.run(made, check=True, capture_output=True)
        self.asked: list[tuple[str, str | None]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def log(self) -> str:
        words = ["git", "-C", str(self.repository), "log", "--format=%s", "main"]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(host: GitHost) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = self.headers["Authorization"]
            host.asked.append((self.headers["Host"], given))
            if given != BASIC:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="x"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            environ = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(host.repository.parent),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REMOTE_USER": "agent",
                "CONTENT_TYPE": self.headers["Content-Type"] or "",
                "HTTP_CONTENT_ENCODING": self.headers["Content-Encoding"] or "",
            }
            ran = subprocess.run(
                ["git", "http-backend"],
                input=self._body(),
                env=environ,
                capture_output=True,
                check=True,
            )
            head, _, body = ran.stdout.partition(b"\r\n\r\n")
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + head + b"\r\n\r\n" + body
            )
            self.close_connection = True

        do_POST = do_GET  # noqa: N815

        def _body(self) -> bytes:
            if self.headers["Transfer-Encoding"] != "chunked":
                return self.rfile.read(int(self.headers["Content-Length"] or 0))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            return body

        def log_message(self, *args: object) -> None:
            pass

    return Handler


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHost]:
    found = GitHost(tmp_path_factory.mktemp("host"))
    yield found
    found.close()


@contextmanager
def bench_for(user: User, host: GitHost) -> Iterator[Bench]:
    """Run a broker for which the hosts have public addresses, which are the server of the test."""
    holes = f"""
import socket, ssl
from gateway.engine.box.proxy import Proxy
trusted = ssl.create_default_context(cadata={host.certificate.read_text()!r})
Proxy.__init__.__kwdefaults__.update(
    resolve=lambda host: ["93.184.216.34"],
    connect=lambda _: socket.create_connection(("127.0.0.1", {host.port})),
    encrypt=lambda one, host: trusted.wrap_socket(one, server_hostname=host),
)
"""
    secrets = {HOST: ["authorization", BASIC]}
    with box_bench(user, holes=holes, hosts=[HOST, PLAIN], secrets=secrets) as bench:
        yield bench


@pytest.mark.parametrize("user", USERS)
def test_git_pushes_and_nothing_in_the_box_has_the_secret(user: User, host: GitHost) -> None:
    with bench_for(user, host) as bench:
        bench.write("a.txt", "1" * 3_000_000)  # more than git sends in one piece
        ran = bench.run(
            "git init -q . && git add a.txt && git commit -qm 'Begin' &&"
            f" git push -q --force https://{HOST}/team.git main 2>&1"
        )
        assert (ran.code, ran.output) == (0, "")
        assert host.log() == "Begin"
        clone = f"git clone -q https://{HOST}/team.git /tmp/again && wc -c < /tmp/again/a.txt"
        assert bench.run(clone).output == "3000000\n"
        searched = bench.run(
            f"env; cat /proc/*/environ /proc/*/cmdline; git config --list; curl -sv http://{HOST}/ 2>&1;"
            " find /tmp /etc .git -type f -size -50k -exec cat {} +"
        )
        assert "insteadof" in searched.output
        assert PASSWORD not in searched.output
        assert BASIC.split()[1] not in searched.output
        told = {(row["host"], row["what"]) for row in bench.reports() if "host" in row}
        assert (HOST, "connected_with_secret") in told


def test_the_secret_goes_to_its_host_alone(host: GitHost) -> None:
    host.asked.clear()
    with bench_for("own", host) as bench:
        for line in (
            f"curl -fsS http://{PLAIN}/team.git/info/refs",
            f"curl -fsS -H 'Host: {HOST}' http://{PLAIN}/team.git/info/refs",
            f"curl -fsS http://{HOST}:{host.port}/team.git/info/refs",
            f"curl -fsSk https://{HOST}/team.git/info/refs",
            f"curl -fsSk https://{PLAIN}/team.git/info/refs",
        ):
            assert bench.run(line).code != 0, line
        assert [given for _, given in host.asked] == [None, None]  # the two over https
        line = f"curl -sS -o /dev/null -w '%{{http_code}}' -H 'Host: {PLAIN}' http://{HOST}/team.git/HEAD"
        assert bench.run(line).output == "200"
    assert host.asked[-1] == (HOST, BASIC)
