"""How long until the first text: the gateway against the bare SDK and other servers, taking turns in one run.

Warm: a conversation that is running, with memory off, empty and filled (`warm_turns.py`); the others with a filled
memory. Fresh: a new conversation (prewarmed) against connect and ask.
Woken: a sleeping conversation against the SDK's resume; opened first: the same after a front end has read its
messages and its agent is there, as while a person types. Burst: the last of six new conversations that begin
at once, the first time at a server that keeps one agent ready, and again while it keeps more because of
that. Same stand-in, same agent program. Beside them stands a server that starts a process for each
request, with the SDK's `query`; more are named by `--peer NAME=URL`.
"""

import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import anyio

from bench import bare, plot, warm_turns
from bench.filled_memory import fill
from bench.peers import Conversation, Peer, peers_of
from bench.per_request import per_request_server
from bench.report import median, save, show
from bench.server import Gateway, connection, running_gateway
from bench.stand_in import stand_in
from bench.warm_turns import BARE, FILLED, Questions, Samples

MESSAGE = next(iter(Questions()))
ITEMS = 100_000
"""Of the filled memory."""
BURST = 6
_BURST_SHARE = 5
"""One burst for so many rounds of the others."""
_SETTLE_S = 1.2
"""Between samples that start processes, so that the next prewarmed one is ready."""
_BURST_SETTLE_S = 6.0
_LOOK_AGAIN_S = 0.05
GATEWAY, PER_REQUEST = "gateway", "process a request"

Ask = Callable[[], Awaitable[float]]


@dataclass(frozen=True)
class FirstTexts:
    """What was measured."""

    medians_ms: Mapping[str, Mapping[str, float]]
    """By kind and by who was asked."""
    server_cpu_ms: Mapping[str, float]
    """A warm turn, with what is written after it."""
    server_mb: float
    """With a filled memory."""

    def ratio(self, kind: str, side: str = GATEWAY) -> float:
        return self.medians_ms[kind][side] / self.medians_ms[kind][BARE]


async def run(rounds: int, peers: Sequence[str] = (), items: int = ITEMS) -> FirstTexts:
    """Measure, print, save and return."""
    with tempfile.TemporaryDirectory() as name:
        async with AsyncExitStack() as stack:
            directory = Path(name)
            url = await stack.enter_async_context(stand_in())
            own = await stack.enter_async_context(per_request_server(directory, url))
            others = await stack.enter_async_context(peers_of([f"{PER_REQUEST}={own}", *peers]))
            model = warm_turns.model_at(url)
            warm = await warm_turns.measure(directory, model, others, rounds, items)
            warm.show(rounds, items)
            await fill(directory / "data", items)
            samples = await _measure(directory, model, others, rounds)
    figures = {
        kind: {side: median(seconds) * 1000 for side, seconds in of.items()}
        for kind, of in samples.items()
    }
    _show(figures, [BARE, GATEWAY, *(peer.name for peer in others)], rounds)
    medians = {**warm.medians_ms(), **figures}
    save(
        "first_text",
        {
            "rounds": rounds,
            "items": items,
            "server_mb_with_a_filled_memory": warm.server_mb,
            "server_cpu_ms_a_warm_turn": warm.cpu_ms(),
            "items_shown_a_turn": warm.shown,
            "late_recalls": warm.late,
            "medians_ms": medians,
            "samples_ms": {
                kind: {side: [s * 1000 for s in seconds] for side, seconds in of.items()}
                for kind, of in {**warm.samples, **samples}.items()
            },
        },
    )
    plot.bars("first_text", "Time to first text, ms (median)", medians)
    return FirstTexts(medians, warm.cpu_ms(), warm.server_mb)


def _show(figures: Mapping[str, Mapping[str, float]], sides: Sequence[str], rounds: int) -> None:
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
        f"Time to first text, medians of {rounds} ({_bursts(rounds)} bursts), ms; {FILLED}",
        ["conversation", *sides, "gateway added", "ratio"],
        rows,
    )


def _bursts(rounds: int) -> int:
    return max(1, rounds // _BURST_SHARE)


async def _measure(
    directory: Path, model: Mapping[str, str], others: Sequence[Peer], rounds: int
) -> dict[str, Samples]:
    url = model["ANTHROPIC_BASE_URL"]
    opts = bare.options(directory / "workspace", url, directory / "bare")

    async def connect_and_ask() -> float:
        return (await bare.connect_and_ask(opts, MESSAGE))[0]

    async with running_gateway(directory, **model, CANDOR_IDLE_CLIENT_S="1") as gateway:
        await anyio.sleep(_SETTLE_S * 3)
        new: dict[str, Ask] = {BARE: connect_and_ask, GATEWAY: lambda: _ask_new(gateway)}
        for peer in others:
            new[peer.name] = lambda peer=peer: peer.ask(MESSAGE, Conversation())  # type: ignore[misc]
        fresh = await _in_turns(new, rounds, _SETTLE_S)
        woken = await _woken(gateway, directory, url, rounds)
        opened = await _woken(gateway, directory, url, rounds, opened_first=True)
    del new[GATEWAY]
    first, again = await _bursts_of(directory, model, new, _bursts(rounds))
    return {
        "fresh": fresh,
        "woken": woken,
        "opened first": opened,
        f"last of {BURST}": first,
        f"last of {BURST} again": again,
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
        return (await link.ask({"message": MESSAGE}))[0]


async def _last_of_burst(ask: Ask) -> float:
    """Begin some new conversations at once; return the seconds to the first text of the last."""
    seconds: list[float] = []

    async def one() -> None:
        seconds.append(await ask())

    async with anyio.create_task_group() as tasks:
        for _ in range(BURST):
            tasks.start_soon(one)
    return max(seconds)


async def _woken(
    gateway: Gateway, directory: Path, url: str, rounds: int, *, opened_first: bool = False
) -> Samples:
    """One conversation that falls asleep (after a second) between the samples."""
    workspace, config_dir = directory / "workspace", directory / "bare"
    _, session = await bare.connect_and_ask(bare.options(workspace, url, config_dir), MESSAGE)
    again = bare.options(workspace, url, config_dir, resume=session)
    async with connection(gateway) as link:
        _, result = await link.ask({"message": MESSAGE})
        body = {"message": MESSAGE, "conversation_id": result["conversation_id"]}
        await anyio.sleep(_SETTLE_S)

        path = f"/conversations/{result['conversation_id']}"

        async def ask_gateway() -> float:
            if opened_first:
                await link.call("GET", f"{path}/messages")
                while not (await link.call("GET", path))[1]["hot"]:  # noqa: ASYNC110
                    await anyio.sleep(_LOOK_AGAIN_S)
            return (await link.ask(body))[0]

        async def resume_and_ask() -> float:
            return (await bare.connect_and_ask(again, MESSAGE))[0]

        return await _in_turns({BARE: resume_and_ask, GATEWAY: ask_gateway}, rounds, _SETTLE_S)
