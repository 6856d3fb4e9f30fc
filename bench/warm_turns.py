"""Warm turns with memory off, empty without and with vectors, and filled, side by side with the bare SDK, in one run.

A first text, ten turns at once, and the processor time that a server spends on a turn. The time counts what is
written after a turn, too: it is read over the whole run, less what the idle server spends meanwhile.
"""

import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import psutil
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from bench import bare
from bench.filled_memory import fill
from bench.made_up_texts import Corpus
from bench.peers import Conversation, Peer
from bench.report import median
from bench.report import show as show_table
from bench.server import Gateway, connection, running_gateway
from bench.stand_in import stand_in

AT_ONCE = 10
BARE, OFF, EMPTY, FILLED = "bare SDK", "memory off", "empty memory", "filled memory"
VECTORS = "empty memory with vectors"
"""As `make run` serves; the others search by words alone."""
FIRST_TEXT, LAST_AT_ONCE = "warm", f"last of {AT_ONCE} warm at once"
SCRIPT = '```candor-script\n[{"text": "Here is a short answer of a few words."}]\n```'
_ROUNDS_BEFORE = 3
_FEWER, _LEAST_ROUNDS = 3, 3
"""One round of ten at once, and of the peers afterwards, for so many rounds of a single turn; at least so many."""
_SETTLE_S = 0.5
"""After a turn, so that what is written behind it delays no other side's."""
_SETTLE_AT_ONCE_S = 3.0
_MOST_SETTLING_S = 30.0
_LOOK_AGAIN_S = 0.25
_IDLE_CPU_S = 0.025
"""A server that spends no more in `_LOOK_AGAIN_S` has settled; two ticks of the system's clock."""
_IDLE_S = 20.0

Ask = Callable[[str], Awaitable[float]]
"""Asks in a running conversation; returns the seconds to the first text."""
Samples = dict[str, list[float]]
"""Seconds by who was asked."""


@dataclass
class Side:
    """Who is asked: its conversations, and its server if there is one to measure."""

    name: str
    conversations: Sequence[Ask]
    server: psutil.Process | None = None
    recalls: list[dict[str, Any]] = field(default_factory=list)
    """What memory showed in each turn, as the turn's result has it."""


@dataclass
class WarmTurns:
    """What was measured."""

    samples: dict[str, Samples]
    cpu_s: dict[str, float]
    """Of the server, a turn."""
    shown: dict[str, float]
    """Items of memory a turn."""
    late: dict[str, int]
    """Turns in which a part of memory did not answer in time, so that their first text did not wait for it."""
    server_mb: float
    """Of the server with a filled memory, before its warm turns."""

    def medians_ms(self) -> dict[str, dict[str, float]]:
        return {
            kind: {side: 1000 * median(seconds) for side, seconds in of.items()}
            for kind, of in self.samples.items()
        }

    def cpu_ms(self) -> dict[str, float]:
        return {side: 1000 * seconds for side, seconds in self.cpu_s.items()}

    def show(self, rounds: int, items: int) -> None:
        """Print a table, a column for each side."""
        medians = self.medians_ms()
        sides = list(medians[FIRST_TEXT])
        rows = []
        for kind, of in medians.items():
            rows.append(
                [f"{kind}, ms", *(f"{of[side]:.1f}" if side in of else "–" for side in sides)]
            )
            ratios = (f"{of[side] / of[BARE]:.2f}" if side in of else "–" for side in sides)
            rows.append([f"{kind}, ratio", *ratios])
        cpu = self.cpu_ms()
        spent = (f"{cpu[side]:.1f}" if side in cpu else "–" for side in sides)
        rows.append(["server's processor a turn, ms", *spent])
        rows.append(["items shown a turn", *(f"{self.shown.get(side, 0):.1f}" for side in sides)])
        rows.append(
            [f"recalls that were late, of {rounds}", *(f"{self.late.get(s, 0)}" for s in sides)]
        )
        show_table(f"Warm turns, medians of {rounds}; filled: {items} items", ["", *sides], rows)
        of = medians[FIRST_TEXT]
        for name in (EMPTY, VECTORS, FILLED):
            print(
                f"  {name} above {OFF}: first text {of[name] - of[OFF]:+.1f} ms,"
                f" server's processor {cpu[name] - cpu[OFF]:+.1f} ms a turn"
            )
        print(f"  the server with a {FILLED}: {self.server_mb:.0f} MB\n", flush=True)


@dataclass
class Questions:
    """Messages that ask a made-up memory for something, each for all sides; the same in each run."""

    _corpus: Corpus = field(default_factory=lambda: Corpus(3))

    def __iter__(self) -> Iterator[str]:
        while True:
            yield f"{self._corpus.question()}\n\n{SCRIPT}"


def model_at(url: str) -> dict[str, str]:
    """Return the settings of a gateway whose model is the stand-in there."""
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CANDOR_MODEL": "candor-demo",
        "CANDOR_EMBEDDER": "none",  # or the filled one makes vectors for hours meanwhile
    }


async def run(rounds: int, items: int) -> None:
    """Measure warm turns alone, without other servers; print and do not save."""
    with tempfile.TemporaryDirectory() as name:
        async with stand_in() as url:
            warm = await measure(Path(name), model_at(url), [], rounds, items)
    warm.show(rounds, items)


async def measure(
    directory: Path, model: Mapping[str, str], peers: Sequence[Peer], rounds: int, items: int
) -> WarmTurns:
    questions = iter(Questions())
    async with AsyncExitStack() as stack:
        await anyio.Path(directory / "workspace").mkdir()
        options = bare.options(
            directory / "workspace", model["ANTHROPIC_BASE_URL"], directory / "bare"
        )
        sides = [await _bare_side(stack, options)]
        for name in (OFF, EMPTY, VECTORS, FILLED):
            own = directory / name.replace(" ", "-")
            await anyio.Path(own).mkdir()
            if name == FILLED:
                await fill(own / "data", items)
            embedder = {"CANDOR_EMBEDDER": "multilingual"} if name == VECTORS else {}
            sides.append(await _gateway_side(stack, own, {**model, **embedder}, name))
        for _ in range(_ROUNDS_BEFORE):
            await _one_each(sides, next(questions))
            await _all_at_once(sides, next(questions))
        servers = {side.name: side.server for side in sides if side.server is not None}
        server_mb = servers[FILLED].memory_info().rss / 1e6
        idle = await _cpu_rates(servers)

        for side in sides:
            side.recalls.clear()
        before, began = _cpu(servers), time.perf_counter()
        first: Samples = {side.name: [] for side in sides}
        for _ in range(rounds):
            for name, seconds in (await _one_each(sides, next(questions))).items():
                first[name].append(seconds)
        await anyio.sleep(_SETTLE_AT_ONCE_S)
        took = time.perf_counter() - began
        cpu_s = {
            name: (after - before[name] - idle[name] * took) / rounds
            for name, after in _cpu(servers).items()
        }
        recalls = {side.name: list(side.recalls) for side in sides if side.server is not None}

        last: Samples = {side.name: [] for side in sides}
        for _ in range(max(_LEAST_ROUNDS, rounds // _FEWER)):
            for name, seconds in (await _all_at_once(sides, next(questions))).items():
                last[name].append(seconds)
        others = [
            Side(peer.name, [partial(peer.ask, conversation=Conversation())]) for peer in peers
        ]
        first |= {side.name: [] for side in others}
        for _ in range(max(_LEAST_ROUNDS, rounds // _FEWER)):
            for name, seconds in (await _one_each(others, next(questions))).items():
                first[name].append(seconds)
    return WarmTurns(
        samples={FIRST_TEXT: first, LAST_AT_ONCE: last},
        cpu_s=cpu_s,
        shown={name: sum(len(r["injected"]) for r in of) / rounds for name, of in recalls.items()},
        late={name: sum(bool(r["degraded"]) for r in of) for name, of in recalls.items()},
        server_mb=server_mb,
    )


async def _bare_side(stack: AsyncExitStack, options: ClaudeAgentOptions) -> Side:
    clients = [ClaudeSDKClient(options) for _ in range(AT_ONCE)]
    for client in clients:
        await client.connect()
        stack.push_async_callback(client.disconnect)

    async def ask(client: ClaudeSDKClient, message: str) -> float:
        return (await bare.ask(client, message, time.perf_counter()))[0]

    return Side(BARE, [partial(ask, client) for client in clients])


async def _gateway_side(
    stack: AsyncExitStack, directory: Path, model: Mapping[str, str], name: str
) -> Side:
    room = {"CANDOR_MAX_LIVE_CLIENTS": str(AT_ONCE + 2)}
    gateway = await stack.enter_async_context(running_gateway(directory, **model, **room))
    ids = [await new_conversation(gateway, has_memory=name != OFF) for _ in range(AT_ONCE)]

    recalls: list[dict[str, Any]] = []

    async def ask(conversation_id: str, message: str) -> float:
        async with connection(gateway) as link:
            body = {"message": message, "conversation_id": conversation_id}
            seconds, result = await link.ask(body)
        recalls.append(result["memory"])
        return seconds

    conversations = [partial(ask, conversation_id) for conversation_id in ids]
    return Side(name, conversations, gateway.process, recalls)


async def new_conversation(gateway: Gateway, *, has_memory: bool) -> str:
    async with connection(gateway) as link:
        _, made = await link.call("POST", "/new-conversation", {})
        path = f"/conversations/{made['conversation_id']}"
        await link.call("PATCH", path, {"memory": {"enabled": has_memory}})
    return str(made["conversation_id"])


async def _one_each(sides: Sequence[Side], message: str) -> dict[str, float]:
    """Ask one after the other in their first conversations."""
    seconds = {}
    for side in sides:
        seconds[side.name] = await side.conversations[0](message)
        await _settle(side, _SETTLE_S)
    return seconds


async def _all_at_once(sides: Sequence[Side], message: str) -> dict[str, float]:
    """Ask in all conversations of a side at once, side after side; return when the last has its first text."""
    last = {}
    for side in sides:
        last[side.name] = await _last(side.conversations, message)
        await _settle(side, _SETTLE_AT_ONCE_S)
    return last


async def _settle(side: Side, least_s: float) -> None:
    """Wait, and until the side's server has written what it writes after turns."""
    await anyio.sleep(least_s)
    if side.server is not None:
        with anyio.move_on_after(_MOST_SETTLING_S):
            while await _spent(side.server, _LOOK_AGAIN_S) > _IDLE_CPU_S:
                pass


async def _spent(server: psutil.Process, during_s: float) -> float:
    before = sum(server.cpu_times()[:2])
    await anyio.sleep(during_s)
    return sum(server.cpu_times()[:2]) - before


async def _last(conversations: Sequence[Ask], message: str) -> float:
    seconds: list[float] = []

    async def ask(conversation: Ask) -> None:
        seconds.append(await conversation(message))

    async with anyio.create_task_group() as tasks:
        for conversation in conversations:
            tasks.start_soon(ask, conversation)
    return max(seconds)


def _cpu(servers: Mapping[str, psutil.Process]) -> dict[str, float]:
    return {name: sum(server.cpu_times()[:2]) for name, server in servers.items()}


async def _cpu_rates(servers: Mapping[str, psutil.Process]) -> dict[str, float]:
    """Return the processor time that each idle server spends a second."""
    await anyio.sleep(_SETTLE_AT_ONCE_S)
    before, began = _cpu(servers), time.perf_counter()
    await anyio.sleep(_IDLE_S)
    took = time.perf_counter() - began
    return {name: (after - before[name]) / took for name, after in _cpu(servers).items()}
