"""How often a turn makes the disk write through: `fsync` and `fdatasync` of the server, by file.

Counted by `strace`, attached to the running server between turns; without it nothing is measured. A
small turn has a few words and no tool call; the other one writes a file.
"""

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL

import anyio

from bench.report import save, show
from bench.server import Connection, Gateway, connection, running_gateway
from bench.stand_in import stand_in
from bench.warm_turns import SCRIPT

_WRITE = '{"tool": "Write", "input": {"file_path": "a.txt", "content": "one"}}'
_TURNS = {
    "small": SCRIPT,
    "one tool call": f'```candor-script\n[{_WRITE}, {{"text": "Written."}}]\n```',
}
_SETTLE_S = 1.5
"""After a turn, so that what is written behind it counts as its own."""
_CALL = re.compile(r"\b(?:fsync|fdatasync)\(\d+<([^>]*)>")


async def run(rounds: int) -> dict[str, dict[str, float]]:
    """Measure, print and save; return the flushes a turn by kind and file, none without `strace`."""
    if shutil.which("strace") is None:
        print("flushes: not measured, strace is not installed\n")
        return {}
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        async with stand_in() as url:
            model = {
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": "none",
                "CANDOR_MODEL": "candor-demo",
            }
            async with running_gateway(directory, **model) as gateway, connection(gateway) as link:
                for kind, message in _TURNS.items():
                    figures[kind] = await _counted(gateway, link, message, rounds, directory)
    files = sorted({file for counts in figures.values() for file in counts})
    rows = [
        [kind, f"{sum(counts.values()):.1f}", *(f"{counts.get(file, 0):.1f}" for file in files)]
        for kind, counts in figures.items()
    ]
    show(f"Flushes a turn, means of {rounds} warm turns", ["turn", "all", *files], rows)
    save("flushes", {"turns": rounds, "flushes_a_turn": figures})
    return figures


async def _counted(
    gateway: Gateway, link: Connection, message: str, rounds: int, directory: Path
) -> dict[str, float]:
    _, result = await link.ask({"message": message})
    body = {"message": message, "conversation_id": result["conversation_id"]}
    await link.ask(body)
    await anyio.sleep(_SETTLE_S * 2)
    trace = directory / "trace"
    async with _traced(gateway.process.pid, trace):
        for _ in range(rounds):
            await link.ask(body)
            await anyio.sleep(_SETTLE_S)
    text = await anyio.Path(trace).read_text(encoding="utf-8", errors="replace")
    names = Counter(Path(file).name for file in _CALL.findall(text))
    return {file: count / rounds for file, count in names.items()}


@asynccontextmanager
async def _traced(pid: int, output: Path) -> AsyncIterator[None]:
    command = ["strace", "-f", "-qq", "-y", "-e", "trace=fsync,fdatasync", "-o", str(output)]
    process = await anyio.open_process([*command, "-p", str(pid)], stdout=DEVNULL, stderr=DEVNULL)
    await anyio.sleep(1)
    try:
        yield
    finally:
        process.terminate()
        await process.wait()
