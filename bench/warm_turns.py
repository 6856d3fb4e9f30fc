"""Warm turns with memory off, empty and filled, side by side with the bare SDK, in one run.

A first text, ten turns at once, and the processor time that a server spends on a turn. The time counts what is
written after a turn, too: it is read over the whole run, less what the idle server spends meanwhile.
"""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import psutil
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from bench import bare
from bench.filled_memory import fill
from bench.made_up_texts import Corpus
from bench.peers import Conversation, Peer
from bench.report import median
from bench.server import Gateway, connection, running_gateway

AT_ONCE = 10
BARE, OFF, EMPTY, FILLED = "bare SDK", "memory off", "empty memory", "filled memory"
FIRST_TEXT, LAST_AT_ONCE = "warm", f"last of {AT_ONCE} warm at once"
SCRIPT = '```candor-script\n[{"text": "Here is a short answer of a few words."}]\n```'
_ROUNDS_BEFORE = 3
_FEWER, _LEAST_ROUNDS = 3, 3
"""One round of ten at once, and of the peers afterwards, for so many rounds of a single turn; at least so many."""
_SETTLE_S = 0.5
"""After a turn, so that what is written behind it delays no other side's."""
_SETTLE_AT_ONCE_S = 3.0
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


@dataclass
class WarmTurns:
    """What was measured."""

    samples: dict[str, Samples]
    cpu_s: dict[str, float]
    """Of the server, a turn."""
    server_mb: float
    """Of the server with a filled memory, before its warm turns."""

    def medians_ms(self) -> dict[str, dict[str, float]]:
        return {
            kind: {side: 1000 * median(seconds) for side, seconds in of.items()}
            for kind, of in self.samples.items()
        }

    def cpu_ms(self) -> dict[str, float]:
        return {side: 1000 * seconds for side, seconds in self.cpu_s.items()}


@dataclass
class Questions:
    """Messages that ask a made-up memory for something, each for all sides; the same in each run."""

    _corpus: Corpus = field(default_factory=lambda: Corpus(3))

    def __iter__(self) -> Iterator[str]:
        while True:
            yield f"{self._corpus.question()}\n\n{SCRIPT}"


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
        for name in (OFF, EMPTY, FILLED):
            own = directory / name.replace(" ", "-")
            await anyio.Path(own).mkdir()
            if name == FILLED:
                await fill(own / "data", items)
            sides.append(await _gateway_side(stack, own, model, name))
        for _ in range(_ROUNDS_BEFORE):
            await _one_each(sides, next(questions))
            await _all_at_once(sides, next(questions))
        servers = {side.name: side.server for side in sides if side.server is not None}
        server_mb = servers[FILLED].memory_info().rss / 1e6
        idle = await _cpu_rates(servers)

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
    return WarmTurns({FIRST_TEXT: first, LAST_AT_ONCE: last}, cpu_s, server_mb)


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
    ids = [await _new_conversation(gateway, has_memory=name != OFF) for _ in range(AT_ONCE)]

    async def ask(conversation_id: str, message: str) -> float:
        async with connection(gateway) as link:
            return (await link.ask({"message": message, "conversation_id": conversation_id}))[0]

    return Side(name, [partial(ask, conversation_id) for conversation_id in ids], gateway.process)


async def _new_conversation(gateway: Gateway, *, has_memory: bool) -> str:
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
        await anyio.sleep(_SETTLE_S)
    return seconds


async def _all_at_once(sides: Sequence[Side], message: str) -> dict[str, float]:
    """Ask in all conversations of a side at once, side after side; return when the last has its first text."""
    last = {}
    for side in sides:
        last[side.name] = await _last(side.conversations, message)
        await anyio.sleep(_SETTLE_AT_ONCE_S)
    return last


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
