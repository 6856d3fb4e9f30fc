"""What the doors of other protocols cost a plain turn: a server with all of them and one without, taking turns.

The one with them also delivers webhooks and runs schedules, though it has none of either. The first text of
`/chat/stream`, and the processor time that a server spends on a turn and on what it writes after it, less what
it spends when nothing is asked.
"""

import tempfile
import time
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import anyio
import psutil
from fastapi import APIRouter

from bench.report import median, save, show
from bench.server import Connection, connection, running_gateway
from bench.stand_in import ROOT, stand_in
from bench.warm_turns import SCRIPT, model_at
from gateway import application, cli

WITH, WITHOUT = "all doors", "no door"
_DOORS = (
    "ag_ui",
    "anthropic",
    "openai",
    "openai_responses",
    "openai_conversations",
    "openai_files",
    "mcp",
)
_ON = {"CANDOR_WEBHOOKS": "on", "CANDOR_SCHEDULES": "on"}
_ROUNDS_BEFORE = 5
_SETTLE_S = 0.3
"""After a turn, so that what is written behind it delays no other side's."""
_IDLE_S = 15.0


async def run(rounds: int) -> None:
    """Measure, print and save."""
    with tempfile.TemporaryDirectory() as name:
        async with AsyncExitStack() as stack:
            model = model_at(await stack.enter_async_context(stand_in()))
            servers: dict[str, psutil.Process] = {}
            asks = {}
            for side, program, more in (
                (WITH, ("app.py",), _ON),
                (WITHOUT, ("-m", "bench.doors"), {}),
            ):
                directory = Path(name) / side.replace(" ", "-")
                await anyio.Path(directory / "workspace").mkdir(parents=True)
                opened = running_gateway(directory, program=program, **model, **more)
                gateway = await stack.enter_async_context(opened)
                link = await stack.enter_async_context(connection(gateway))
                _, made = await link.ask({"message": SCRIPT})
                body = {"message": SCRIPT, "conversation_id": made["conversation_id"]}
                servers[side], asks[side] = gateway.process, partial(_first_text_s, link, body)
            seconds: dict[str, list[float]] = {side: [] for side in asks}
            for _ in range(_ROUNDS_BEFORE):
                for ask in asks.values():
                    await ask()
            idle_s = await _idle_rates(servers)
            before, began = _cpu_s(servers), time.perf_counter()
            for number in range(rounds):
                for side in list(asks)[:: -1 if number % 2 else 1]:
                    seconds[side].append(await asks[side]())
                    await anyio.sleep(_SETTLE_S)
            took_s = time.perf_counter() - began
            spent_s = {
                side: (after - before[side] - idle_s[side] * took_s) / rounds
                for side, after in _cpu_s(servers).items()
            }
            memory_mb = {side: one.memory_info().rss / 1e6 for side, one in servers.items()}
    first_ms = {side: 1000 * median(of) for side, of in seconds.items()}
    cpu_ms = {side: 1000 * of for side, of in spent_s.items()}
    rows = [
        [what, *(f"{of[side]:.1f}" for side in servers), f"{of[WITH] - of[WITHOUT]:+.1f}"]
        for what, of in {
            "first text, ms": first_ms,
            "server's processor a turn, ms": cpu_ms,
            "server's memory, MB": memory_mb,
        }.items()
    ]
    show(f"A warm turn, medians of {rounds}", ["", *servers, "difference"], rows)
    figures = {"first_text_ms": first_ms, "cpu_ms_a_turn": cpu_ms, "server_mb": memory_mb}
    save("doors", {"rounds": rounds, **figures})


async def _first_text_s(link: Connection, body: dict[str, str]) -> float:
    return (await link.ask(body))[0]


def _cpu_s(servers: dict[str, psutil.Process]) -> dict[str, float]:
    return {side: sum(server.cpu_times()[:2]) for side, server in servers.items()}


async def _idle_rates(servers: dict[str, psutil.Process]) -> dict[str, float]:
    """Return the processor time that each idle server spends a second."""
    await anyio.sleep(_SETTLE_S * 10)
    before, began = _cpu_s(servers), time.perf_counter()
    await anyio.sleep(_IDLE_S)
    took_s = time.perf_counter() - began
    return {side: (after - before[side]) / took_s for side, after in _cpu_s(servers).items()}


def _serve_without() -> None:
    """Run the server as `app.py` does, without the doors' routes."""
    for name in _DOORS:
        door = getattr(application, name)
        setattr(application, name, APIRouter(prefix=door.prefix))
    cli.run(ROOT)


if __name__ == "__main__":
    _serve_without()
