"""300 conversations on 6 agent processes: how many processes and how much memory, and who remembers.

Each conversation is told a codeword, then, after all the others had their turn, asked for it.
"""

import tempfile
from pathlib import Path

import anyio
import psutil

from bench.report import save, show
from bench.server import Gateway, connection, running_gateway
from bench.stand_in import stand_in
from gateway.engine.processes import MARK

CONVERSATIONS = 300
MAX_LIVE = 6
PREWARMED = 1
_ASKERS = 6


class _Watch:
    """What was seen of the processes while the conversations ran."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.most_agents = 0
        self.server_mb: list[float] = []

    async def run(self) -> None:
        while True:
            await anyio.to_thread.run_sync(self._look)
            await anyio.sleep(0.25)

    def _look(self) -> None:
        agents = 0
        for child in self._gateway.process.children():
            try:
                agents += MARK in child.environ()
            except psutil.Error:
                continue
        self.most_agents = max(self.most_agents, agents)
        self.server_mb.append(self._gateway.process.memory_info().rss / 2**20)


async def run(rounds: int, conversations: int = CONVERSATIONS) -> None:
    del rounds
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        async with (
            stand_in() as url,
            running_gateway(
                directory,
                ANTHROPIC_BASE_URL=url,
                ANTHROPIC_API_KEY="none",
                CANDOR_MODEL="candor-demo",
                CANDOR_MAX_LIVE_CLIENTS=str(MAX_LIVE),
                CANDOR_PREWARMED_CLIENTS=str(PREWARMED),
            ) as gateway,
            anyio.create_task_group() as tasks,
        ):
            watch = _Watch(gateway)
            tasks.start_soon(watch.run)
            ids = await _each(gateway, list(range(conversations)), _tell)
            settled = watch.server_mb[-1]
            remembered = await _each(gateway, list(ids.items()), _asks)
            tasks.cancel_scope.cancel()
    figures = {
        "conversations": conversations,
        "max_live_clients": MAX_LIVE,
        "prewarmed_clients": PREWARMED,
        "most_agent_processes": watch.most_agents,
        "server_mb_first": watch.server_mb[0],
        "server_mb_after_half": settled,
        "server_mb_last": watch.server_mb[-1],
        "remembered": sum(remembered.values()),
    }
    show(
        f"{conversations} conversations on {MAX_LIVE} clients",
        ["figure", "value"],
        [[key, f"{value:.0f}"] for key, value in figures.items()],
    )
    save("many_conversations", figures)


async def _each(gateway: Gateway, items: list, work) -> dict:
    """Do `work` for all items, some side by side; gives what each came to."""
    results: dict = {}
    waiting = list(reversed(items))

    async def worker() -> None:
        async with connection(gateway) as link:
            while waiting:
                item = waiting.pop()
                results[item if isinstance(item, int) else item[0]] = await work(link, item)

    async with anyio.create_task_group() as tasks:
        for _ in range(_ASKERS):
            tasks.start_soon(worker)
    return results


async def _tell(link, number: int) -> str:
    _, result = await link.ask({"message": f"my codeword is plum{number}"})
    return result["conversation_id"]


async def _asks(link, item: tuple[int, str]) -> bool:
    number, conversation_id = item
    _, result = await link.ask(
        {"message": "what is my codeword?", "conversation_id": conversation_id}
    )
    return f"plum{number}" in result["reply"]
