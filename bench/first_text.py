"""How long until the first text: the gateway against the bare SDK and other servers, taking turns in one run.

Warm: a conversation that is running. Fresh: a new conversation (prewarmed) against connect and ask.
Woken: a sleeping conversation against the SDK's resume; opened first: the same after a front end has read its
messages and its agent is there, as while a person types. Burst: the last of six new conversations that begin
at once, the first time at a server that keeps one agent ready, and again while it keeps more because of
that. Same stand-in, same agent program. Beside them stands a server that starts a process for each
request, with the SDK's `query`; more are named by `--peer NAME=URL`.
"""

import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
from claude_agent_sdk import ClaudeSDKClient

from bench import bare, plot
from bench.peers import Conversation, Peer, peers_of
from bench.per_request import per_request_server
from bench.report import median, save, show
from bench.server import Gateway, connection, running_gateway
from bench.stand_in import stand_in

SCRIPT = '```candor-script\n[{"text": "Here is a short answer of a few words."}]\n```'
BURST = 6
_BURST_SHARE = 5
"""One burst for so many rounds of the others."""
_SETTLE_S = 1.2
"""Between samples that start processes, so that the next prewarmed one is ready."""
_BURST_SETTLE_S = 6.0
_LOOK_AGAIN_S = 0.05
BARE, GATEWAY, PER_REQUEST = "bare SDK", "gateway", "process a request"

Ask = Callable[[], Awaitable[float]]
Samples = dict[str, list[float]]
"""Seconds by who was asked."""


async def run(rounds: int, peers: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """Measure, print and save; return the medians in ms by kind and by who was asked."""
    with tempfile.TemporaryDirectory() as name:
        async with AsyncExitStack() as stack:
            directory = Path(name)
            url = await stack.enter_async_context(stand_in())
            own = await stack.enter_async_context(per_request_server(directory, url))
            others = await stack.enter_async_context(peers_of([f"{PER_REQUEST}={own}", *peers]))
            samples = await _measure(directory, url, others, rounds)
            memory_mb = samples.pop("memory")[GATEWAY][0]
    sides = [BARE, GATEWAY, *(peer.name for peer in others)]
    figures = {
        kind: {side: median(of[side]) * 1000 for side in sides if side in of}
        for kind, of in samples.items()
    }
    rows = [
        [
            kind,
            *(f"{of[side]:.1f}" if side in of else "–" for side in sides),
            f"{of[GATEWAY] - of[BARE]:+.1f}",
            f"{of[GATEWAY] / of[BARE]:.2f}",
        ]
        for kind, of in figures.items()
    ]
    show(
        f"Time to first text, medians of {rounds} ({_bursts(rounds)} bursts), ms",
        ["conversation", *sides, "gateway added", "ratio"],
        rows,
    )
    save(
        "first_text",
        {
            "rounds": rounds,
            "server_mb_after_two_turns": memory_mb,
            "medians_ms": figures,
            "samples_ms": {
                kind: {side: [s * 1000 for s in seconds] for side, seconds in of.items()}
                for kind, of in samples.items()
            },
        },
    )
    plot.bars("first_text", "Time to first text, ms (median)", figures)
    return {**figures, "memory": {GATEWAY: memory_mb}}


def _bursts(rounds: int) -> int:
    return max(1, rounds // _BURST_SHARE)


async def _measure(
    directory: Path, url: str, others: Sequence[Peer], rounds: int
) -> dict[str, Samples]:
    model = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CANDOR_MODEL": "candor-demo",
    }
    opts = bare.options(directory / "workspace", url, directory / "bare")

    async def connect_and_ask() -> float:
        return (await bare.connect_and_ask(opts, SCRIPT))[0]

    async with running_gateway(directory, **model) as gateway:
        await anyio.sleep(_SETTLE_S * 3)
        warm, memory_mb = await _warm(gateway, ClaudeSDKClient(opts), others, rounds)
    async with running_gateway(directory, **model, CANDOR_IDLE_CLIENT_S="1") as gateway:
        await anyio.sleep(_SETTLE_S * 3)
        new: dict[str, Ask] = {BARE: connect_and_ask, GATEWAY: lambda: _ask_new(gateway)}
        for peer in others:
            new[peer.name] = lambda peer=peer: peer.ask(SCRIPT, Conversation())  # type: ignore[misc]
        fresh = await _in_turns(new, rounds, _SETTLE_S)
        woken = await _woken(gateway, directory, url, rounds)
        opened = await _woken(gateway, directory, url, rounds, opened_first=True)
    del new[GATEWAY]
    first, again = await _bursts_of(directory, model, new, _bursts(rounds))
    return {
        "warm": warm,
        "fresh": fresh,
        "woken": woken,
        "opened first": opened,
        f"last of {BURST}": first,
        f"last of {BURST} again": again,
        "memory": {GATEWAY: [memory_mb]},
    }


async def _bursts_of(
    directory: Path, model: Mapping[str, str], others: Mapping[str, Ask], bursts: int
) -> tuple[Samples, Samples]:
    """Measure a server's first burst and its second one, with a new server each time."""
    first: Samples = {side: [] for side in (*others, GATEWAY)}
    again: Samples = {side: [] for side in first}
    for _ in range(bursts):
        async with running_gateway(directory, **model, CANDOR_IDLE_CLIENT_S="1") as gateway:
            await anyio.sleep(_SETTLE_S * 3)
            asks: dict[str, Ask] = {**others, GATEWAY: lambda gateway=gateway: _ask_new(gateway)}  # type: ignore[misc]
            for samples in (first, again):
                for side, ask in asks.items():
                    samples[side].append(await _last_of_burst(ask))
                    await anyio.sleep(_BURST_SETTLE_S)
    return first, again


async def _in_turns(sides: dict[str, Ask], rounds: int, settle_s: float) -> Samples:
    samples: Samples = {side: [] for side in sides}
    for _ in range(rounds):
        for side, ask in sides.items():
            samples[side].append(await ask())
            await anyio.sleep(settle_s)
    return samples


async def _ask_new(gateway: Gateway) -> float:
    async with connection(gateway) as link:
        return (await link.ask({"message": SCRIPT}))[0]


async def _last_of_burst(ask: Ask) -> float:
    """Begin some new conversations at once; return the seconds to the first text of the last."""
    seconds: list[float] = []

    async def one() -> None:
        seconds.append(await ask())

    async with anyio.create_task_group() as tasks:
        for _ in range(BURST):
            tasks.start_soon(one)
    return max(seconds)


async def _warm(
    gateway: Gateway, client: ClaudeSDKClient, others: Sequence[Peer], rounds: int
) -> tuple[Samples, float]:
    await client.connect()
    talks = {peer.name: Conversation() for peer in others}
    async with connection(gateway) as link:
        _, result = await link.ask({"message": SCRIPT})
        body = {"message": SCRIPT, "conversation_id": result["conversation_id"]}
        await link.ask(body)
        await anyio.sleep(_SETTLE_S)
        memory_mb = gateway.process.memory_info().rss / 1e6

        async def ask_gateway() -> float:
            return (await link.ask(body))[0]

        async def ask_client() -> float:
            return (await bare.ask(client, SCRIPT, time.perf_counter()))[0]

        sides: dict[str, Ask] = {BARE: ask_client, GATEWAY: ask_gateway}
        for peer in others:
            sides[peer.name] = lambda peer=peer: peer.ask(SCRIPT, talks[peer.name])  # type: ignore[misc]
        await _in_turns(sides, 3, 0)
        samples = await _in_turns(sides, rounds, 0)
    await client.disconnect()
    return samples, memory_mb


async def _woken(
    gateway: Gateway, directory: Path, url: str, rounds: int, *, opened_first: bool = False
) -> Samples:
    """One conversation that falls asleep (after a second) between the samples."""
    workspace, config_dir = directory / "workspace", directory / "bare"
    _, session = await bare.connect_and_ask(bare.options(workspace, url, config_dir), SCRIPT)
    again = bare.options(workspace, url, config_dir, resume=session)
    async with connection(gateway) as link:
        _, result = await link.ask({"message": SCRIPT})
        body = {"message": SCRIPT, "conversation_id": result["conversation_id"]}
        await anyio.sleep(_SETTLE_S)

        path = f"/conversations/{result['conversation_id']}"

        async def ask_gateway() -> float:
            if opened_first:
                await link.call("GET", f"{path}/messages")
                while not (await link.call("GET", path))[1]["hot"]:  # noqa: ASYNC110
                    await anyio.sleep(_LOOK_AGAIN_S)
            return (await link.ask(body))[0]

        async def resume_and_ask() -> float:
            return (await bare.connect_and_ask(again, SCRIPT))[0]

        return await _in_turns({BARE: resume_and_ask, GATEWAY: ask_gateway}, rounds, _SETTLE_S)
