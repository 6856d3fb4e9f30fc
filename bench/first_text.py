"""How long until the first text: the gateway against the bare SDK, taking turns in one run.

Warm: a conversation that is running. Fresh: a new conversation (prewarmed) against connect and ask.
Woken: a sleeping conversation against the SDK's resume. Same stand-in, same agent program.
"""

import tempfile
import time
from pathlib import Path

import anyio
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from bench import bare
from bench.report import median, save, show
from bench.server import Gateway, connection, running_gateway
from bench.stand_in import stand_in

SCRIPT = '```candor-script\n[{"text": "Here is a short answer of a few words."}]\n```'
_SETTLE_S = 1.2
"""Between samples that start processes, so that the next prewarmed one is ready."""


async def run(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        async with stand_in() as url:
            model = {
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": "none",
                "CANDOR_MODEL": "candor-demo",
            }
            opts = bare.options(directory / "workspace", url, directory / "bare")
            async with running_gateway(directory, **model) as gateway:
                await anyio.sleep(_SETTLE_S * 3)
                warm = await _warm(gateway, ClaudeSDKClient(opts), rounds)
            async with running_gateway(directory, **model, CANDOR_IDLE_CLIENT_S="1") as gateway:
                await anyio.sleep(_SETTLE_S * 3)
                fresh = await _fresh(gateway, opts, rounds)
                woken = await _woken(gateway, directory, url, rounds)
    rows, figures = [], {}
    for kind, (ours, theirs) in {"warm": warm, "fresh": fresh, "woken": woken}.items():
        a, b = median(ours) * 1000, median(theirs) * 1000
        rows.append([kind, f"{b:.1f}", f"{a:.1f}", f"{a - b:+.1f}", f"{a / b:.2f}"])
        figures[kind] = {
            "bare_ms": b,
            "gateway_ms": a,
            "ratio": a / b,
            "samples": rounds,
            "gateway_samples_ms": [seconds * 1000 for seconds in ours],
            "bare_samples_ms": [seconds * 1000 for seconds in theirs],
        }
    show(
        f"Time to first text, medians of {rounds}, ms",
        ["conversation", "bare SDK", "gateway", "added", "ratio"],
        rows,
    )
    save("first_text", figures)


async def _warm(
    gateway: Gateway, client: ClaudeSDKClient, rounds: int
) -> tuple[list[float], list[float]]:
    ours, theirs = [], []
    await client.connect()
    async with connection(gateway) as link:
        _, result = await link.ask({"message": SCRIPT})
        body = {"message": SCRIPT, "conversation_id": result["conversation_id"]}
        for _ in range(3):
            await link.ask(body)
            await bare.ask(client, SCRIPT, time.perf_counter())
        for _ in range(rounds):
            ours.append((await link.ask(body))[0])
            theirs.append((await bare.ask(client, SCRIPT, time.perf_counter()))[0])
    await client.disconnect()
    return ours, theirs


async def _fresh(
    gateway: Gateway, opts: ClaudeAgentOptions, rounds: int
) -> tuple[list[float], list[float]]:
    ours, theirs = [], []
    async with connection(gateway) as link:
        for _ in range(rounds):
            ours.append((await link.ask({"message": SCRIPT}))[0])
            await anyio.sleep(_SETTLE_S)
            theirs.append((await bare.connect_and_ask(opts, SCRIPT))[0])
            await anyio.sleep(_SETTLE_S)
    return ours, theirs


async def _woken(
    gateway: Gateway, directory: Path, url: str, rounds: int
) -> tuple[list[float], list[float]]:
    """One conversation that falls asleep (after a second) between the samples."""
    ours, theirs = [], []
    workspace, config_dir = directory / "workspace", directory / "bare"
    _, session = await bare.connect_and_ask(bare.options(workspace, url, config_dir), SCRIPT)
    again = bare.options(workspace, url, config_dir, resume=session)
    async with connection(gateway) as link:
        _, result = await link.ask({"message": SCRIPT})
        body = {"message": SCRIPT, "conversation_id": result["conversation_id"]}
        for _ in range(rounds):
            await anyio.sleep(_SETTLE_S)
            theirs.append((await bare.connect_and_ask(again, SCRIPT))[0])
            await anyio.sleep(_SETTLE_S)
            ours.append((await link.ask(body))[0])
    return ours, theirs
