"""Turns on one, two and three nodes, and on two while one of them drains: what they cost, and what is lost.

The nodes are the server with a scripted engine in place of agents, in processes of their own, on one
PostgreSQL that syncs its commits. Each client has a conversation and sends its next message to the next node,
so that of its messages all but one node's share are passed on.
"""

import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL

import anyio
import httpx
import psutil
from anyio.streams.buffered import BufferedByteReceiveStream

from bench.report import percentile, save, show
from bench.stand_in import ROOT, clean_environ
from bench.synced_postgres import server_s as postgres_s
from gateway.application import create_app
from gateway.assemble import open_services
from gateway.http.forwarding import new_transport
from gateway.model_access import ModelAccess
from gateway.private_files import make_directories_blocking
from gateway.settings import Secret, Settings
from tests.support import postgres
from tests.support.asgi import served
from tests.support.live_server import script
from tests.support.ports import lasting_port
from tests.support.scripted_engine import ScriptedEngine

CLIENTS = 8
TURNS = 15
"""Of each client."""
GRACE_S = 5
MESSAGE = script({"text": "word " * 20})
SLOW = script({"text": "word " * 20, "delta_delay_ms": 50})


async def run(rounds: int) -> None:
    """Measure, print and save."""
    del rounds
    postgres._SHELL = postgres._SHELL.replace("fsync='off'", "fsync='on'")  # noqa: SLF001
    figures = {f"{count} nodes": await _turns(count) for count in (1, 2, 3)}
    rows = [[name, *(f"{v:.1f}" for v in arm.values())] for name, arm in figures.items()]
    show(f"{CLIENTS} clients, {TURNS} turns each", ["", *next(iter(figures.values()))], rows)
    drain = await _drain()
    show("One of two nodes drains", [*drain], [[f"{v:.2f}" for v in drain.values()]])
    save("node_turns", {"turns": figures, "drain": drain})


@dataclass(slots=True)
class _Told:
    """What the clients were told."""

    took_s: list[float] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    refused: int = 0
    unanswered: int = 0
    """The connection was refused, or broke off."""


async def _turns(count: int) -> dict[str, float]:
    async with _nodes(count) as nodes:
        urls = [url for _, url in nodes]
        warm, told = _Told(), _Told()
        await _ask(urls, 1, warm)
        server_s, nodes_s = postgres_s(), [_process_s(process) for process, _ in nodes]
        begun_s = time.monotonic()
        await _ask(urls, TURNS, told)
        wall_s = time.monotonic() - begun_s
        used_s = sum(_process_s(process) for process, _ in nodes) - sum(nodes_s)
        server_s = postgres_s() - server_s
    turns = len(told.outcomes)
    assert set(told.outcomes) == {"answered"}, told
    return {
        "turns a second": turns / wall_s,
        "p50 ms": percentile(told.took_s, 0.5) * 1e3,
        "p95 ms": percentile(told.took_s, 0.95) * 1e3,
        "nodes, CPU ms a turn": used_s / turns * 1e3,
        "PostgreSQL, CPU ms a turn": server_s / turns * 1e3,
    }


async def _drain() -> dict[str, float]:
    """Take one of two nodes down while turns run at both; its clients go on at the other."""
    told = _Told()
    async with _nodes(2) as nodes:
        (process, _), _ = nodes
        urls = [url for _, url in nodes]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_ask, urls, TURNS, told, SLOW)
            await anyio.sleep(3)
            begun_s = time.monotonic()
            process.send_signal(signal.SIGTERM)
            await process.wait()
            ended_s = time.monotonic() - begun_s
    return {
        "turns": len(told.outcomes),
        "answered": told.outcomes.count("answered"),
        "refused": told.refused,
        "no answer, or no connection": told.unanswered,
        "until the node has ended, s": ended_s,
        "longest turn, s": max(told.took_s),
    }


async def _ask(urls: Sequence[str], turns: int, told: _Told, message: str = MESSAGE) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(CLIENTS):
            tasks.start_soon(_client, urls, number, turns, told, message)


async def _client(urls: Sequence[str], number: int, turns: int, told: _Told, message: str) -> None:
    body = {"message": message}
    async with httpx.AsyncClient(timeout=120, trust_env=False) as http:
        for turn in range(turns):
            begun_s = time.monotonic()
            key, tries = f"{number}-{turn}-{begun_s}", 0
            while True:
                url = urls[(number + turn + tries) % len(urls)]
                tries += 1
                try:
                    given = {**body, "idempotency_key": key}
                    answer = await http.post(f"{url}/chat", json=given)
                except httpx.HTTPError:
                    told.unanswered += 1
                else:
                    if answer.status_code == 200:
                        break
                    told.refused += 1
                await anyio.sleep(0.05)
            result = answer.json()
            body["conversation_id"] = result["conversation_id"]
            told.took_s.append(time.monotonic() - begun_s)
            told.outcomes.append(result["outcome"])


@asynccontextmanager
async def _nodes(count: int) -> AsyncIterator[list[tuple[anyio.abc.Process, str]]]:
    async with AsyncExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = stack.enter_context(postgres.new_database_blocking("x"))
        nodes: list[tuple[anyio.abc.Process, str]] = []
        try:
            for _ in range(count):
                port = lasting_port()
                process = await anyio.open_process(
                    [sys.executable, "-m", "bench.node_turns", database, str(root), str(port)],
                    cwd=ROOT,
                    env=clean_environ(),
                    stderr=DEVNULL,
                )
                nodes.append((process, f"http://127.0.0.1:{port}"))
                assert process.stdout is not None
                await BufferedByteReceiveStream(process.stdout).receive_until(b"ready\n", 1000)
            yield nodes
        finally:
            for process, _ in nodes:
                if process.returncode is None:
                    process.kill()
                    await process.wait()


def _process_s(process: anyio.abc.Process) -> float:
    return float(sum(psutil.Process(process.pid).cpu_times()[:2]))


async def _serve(database: str, root: Path, port: int) -> None:
    """Be one node until SIGTERM, then drain."""
    settings = Settings(
        workspace=root / "workspace",
        data_dir=root / str(port),
        log_dir=root / "logs",
        database_url=Secret(database),
        node_url=f"http://127.0.0.1:{port}",
        embedder="none",
        shutdown_grace_s=GRACE_S,
        node_ttl_s=60,
    )
    make_directories_blocking(settings)
    settings.workspace.mkdir(exist_ok=True)
    access = ModelAccess(demo=True, model="scripted", secrets=(), ask_model=None, mcp_servers=())
    async with (
        open_services(settings, lambda *_: ScriptedEngine(settings.workspace), access) as services,
        new_transport() as between_nodes,
    ):
        app = create_app(services, between_nodes=between_nodes)
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            async with served(app, port=port):
                print("ready", flush=True)
                async for _ in signals:
                    break
                await services.end_turns()
                await anyio.sleep(0.5)  # what was answered is sent


if __name__ == "__main__":
    anyio.run(_serve, sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
