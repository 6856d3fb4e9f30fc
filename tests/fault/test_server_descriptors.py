"""The real server with few file descriptors, and clients that take them all."""

import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import pytest

from tests.support.live_server import LiveClient, LiveServer, running_server, script

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(shutil.which("prlimit") is None, reason="limits a process's descriptors"),
]

FLOOD = 400
MAX_LOG_BYTES = 50_000


class Idlers:
    """Connections on which nothing is sent; those that the server ended are opened again."""

    def __init__(self, server: LiveServer) -> None:
        self._address = ("127.0.0.1", int(server.url.rpartition(":")[2]))
        self._open: list[socket.socket] = []

    def renew_blocking(self) -> None:
        self._open = [idler for idler in self._open if not _was_closed(idler)]
        while len(self._open) < FLOOD:
            idler = socket.create_connection(self._address, timeout=10)
            idler.setblocking(False)  # noqa: FBT003  the socket's own signature
            self._open.append(idler)

    def close(self) -> None:
        for idler in self._open:
            idler.close()


def _was_closed(idler: socket.socket) -> bool:
    try:
        idler.recv(1)
    except BlockingIOError:
        return False
    except OSError:
        pass
    idler.close()
    return True


@contextmanager
def idlers_at(server: LiveServer) -> Iterator[Idlers]:
    with ExitStack() as stack:
        idlers = Idlers(server)
        stack.callback(idlers.close)
        yield idlers


async def metric(client: LiveClient, row: str) -> float:
    text = (await client.http.get("/metrics")).text
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(row))


@pytest.mark.parametrize("descriptors", [128, pytest.param(256, marks=pytest.mark.soak)])
async def test_idle_connections_neither_end_the_server_nor_fill_its_log(
    tmp_path: Path, descriptors: int
) -> None:
    limited = ["prlimit", f"--nofile={descriptors}"]
    async with (
        running_server(tmp_path, prefix=limited, prewarmed_clients=1) as server,
        server.client() as client,
    ):
        client.http.headers["Connection"] = (
            "close"  # an idle one of its own makes room as any other
        )
        conversation_id = (await client.ask("hi"))["conversation_id"]
        with idlers_at(server) as idlers:
            for _ in range(3):
                await anyio.to_thread.run_sync(idlers.renew_blocking)
                during = await client.ask(script({"text": "Meanwhile."}), conversation_id)
                assert (during["outcome"], during["reply"]) == ("answered", "Meanwhile.")
            assert await metric(client, 'candor_connections_dropped_total{reason="room"}') > FLOOD
        after = await client.ask(script({"text": "After."}), conversation_id)
        assert (after["outcome"], after["reply"]) == ("answered", "After.")
        assert server.err_file.stat().st_size < MAX_LOG_BYTES
