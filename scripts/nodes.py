"""Two servers on one PostgreSQL behind a proxy, on loopback: what docs/scale.md describes, to try out.

    make nodes            or: python scripts/nodes.py --port 8000 --nodes 2

Ctrl-C ends all of it; a second one does not wait for turns. What the servers kept is thrown away; the workspace and the settings are
those of `make run`. PostgreSQL comes from the Python package that the tests use.
"""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
import httpx
import uvicorn

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # as a script it finds only its own folder

from tests.support.ports import lasting_port  # noqa: E402
from tests.support.postgres import server_url  # noqa: E402
from tests.support.round_robin import round_robin  # noqa: E402

START_S = 120
LOOK_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True)
class Node:
    """One server."""

    url: str
    process: subprocess.Popen[bytes]


def start_nodes(count: int, directory: Path, database_url: str) -> Iterator[Node]:
    """Start servers, each in a session of its own: Ctrl-C of the terminal does not reach them."""
    for number in range(1, count + 1):
        url = f"http://127.0.0.1:{lasting_port()}"
        environment = {
            **os.environ,
            "CANDOR_HOST": "127.0.0.1",
            "CANDOR_PORT": url.rpartition(":")[2],
            "CANDOR_DATABASE_URL": database_url,
            "CANDOR_NODE_URL": url,
            "CANDOR_DATA_DIR": str(directory / f"node-{number}"),
            "CANDOR_LOG_DIR": str(directory / "logs"),
        }
        command = [sys.executable, str(ROOT / "app.py")]
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
        )
        yield Node(url, process)


async def all_started(nodes: Sequence[Node]) -> bool:
    """Wait until all serve; False if one does not start."""
    async with httpx.AsyncClient(trust_env=False) as client:
        with anyio.fail_after(START_S):
            for node in nodes:
                while not await serves(client, node):
                    if node.process.poll() is not None:
                        return False
                    await anyio.sleep(LOOK_AGAIN_S)
    return True


async def serves(client: httpx.AsyncClient, node: Node) -> bool:
    """Return whether a node can run turns."""
    try:
        return (await client.get(f"{node.url}/healthz/ready")).is_success
    except httpx.TransportError:
        return False


class Proxy(uvicorn.Server):
    """A server that leaves signals to `pass_signals_on`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


async def pass_signals_on(nodes: Sequence[Node]) -> None:
    """Ask the nodes to stop: they end their turns and streams. Asked again they do so at once."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            for node in nodes:
                node.process.terminate()


async def end_with_the_nodes(nodes: Sequence[Node], proxy: Proxy) -> None:
    """Stop the proxy when no node is left."""
    for node in nodes:
        await anyio.to_thread.run_sync(node.process.wait, abandon_on_cancel=True)
    proxy.should_exit = True


async def run(nodes: Sequence[Node], listener: socket.socket) -> bool:
    """Serve until the nodes have ended; False if one does not start."""
    async with (
        round_robin([node.url for node in nodes]) as app,
        anyio.create_task_group() as tasks,
    ):
        proxy = Proxy(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5))
        tasks.start_soon(pass_signals_on, nodes)
        if has_started := await all_started(nodes):
            for number, node in enumerate(nodes, start=1):
                tell(f"Node {number} is process {node.process.pid} at {node.url}")
            tell(f"Open http://127.0.0.1:{listener.getsockname()[1]}")
            tasks.start_soon(end_with_the_nodes, nodes, proxy)
            await proxy.serve([listener])
        tasks.cancel_scope.cancel()
    return has_started


def tell(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201


def main() -> None:
    """Start all of it and wait for its end."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--port", type=int, default=8000, help="of the proxy; 0 takes a free one")
    parser.add_argument("--nodes", type=int, default=2)
    options = parser.parse_args()
    with contextlib.ExitStack() as opened:
        try:
            listener = opened.enter_context(socket.create_server(("127.0.0.1", options.port)))
        except OSError as exc:
            sys.exit(
                f"Port {options.port} cannot be used ({exc.strerror}); name another with --port."
            )
        directory = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="candor-nodes-")))
        nodes: list[Node] = []
        opened.callback(end, nodes)
        nodes.extend(start_nodes(options.nodes, directory, server_url()))
        if not anyio.run(run, nodes, listener):
            sys.exit("A server did not start, or was stopped before it had.")


def end(nodes: Sequence[Node]) -> None:
    """End what still runs."""
    for node in nodes:
        node.process.terminate()
    for node in nodes:
        node.process.wait()


if __name__ == "__main__":
    main()
