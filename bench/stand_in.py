"""The model that both sides of a comparison talk to: the demo model in a process of its own."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from gateway.demo.server import serve_demo

ROOT = Path(__file__).resolve().parent.parent


@asynccontextmanager
async def stand_in() -> AsyncIterator[str]:
    """Serve the stand-in while the block runs; gives its base URL."""
    process = await anyio.open_process(
        [sys.executable, "-m", "bench.stand_in"], cwd=ROOT, stderr=None, env=clean_environ()
    )
    try:
        assert process.stdout is not None
        url = (await process.stdout.receive()).decode().strip()
        yield url
    finally:
        process.terminate()
        await process.wait()


def clean_environ(**more: str) -> dict[str, str]:
    ours = ("CANDOR_", "ANTHROPIC_", "CLAUDE_")
    return {k: v for k, v in os.environ.items() if not k.startswith(ours)} | more


async def _serve() -> None:
    async with serve_demo(cadence_ms=0) as url:
        print(url, flush=True)
        await anyio.sleep_forever()


if __name__ == "__main__":
    try:
        anyio.run(_serve)
    except KeyboardInterrupt:
        sys.exit(0)
