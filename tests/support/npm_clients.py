"""Official clients for JavaScript, each in a program of `tests/e2e/npm` that takes and gives lines of JSON."""

import json
import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.support.live_server import DEADLINE_S

MODULES = os.environ.get("CANDOR_TEST_NPM", "")
_PROGRAMS = Path(__file__).parents[1] / "e2e" / "npm"
_MAX_LINE = 10_000_000

needs_npm = pytest.mark.skipif(
    not MODULES, reason="the clients are not installed (scripts/find-npm-clients)"
)


class NpmClient:
    """A client that runs."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin = process.stdin
        self._stdout = BufferedByteReceiveStream(process.stdout)

    async def do(self, **asked: Any) -> Any:
        """Run one request of the client; return its result."""
        await self._stdin.send(f"{json.dumps(asked)}\n".encode())
        with anyio.fail_after(DEADLINE_S):
            return json.loads(await self._stdout.receive_until(b"\n", _MAX_LINE))


@asynccontextmanager
async def npm_client(
    program: str, module: str, *arguments: str, environ: Mapping[str, str] | None = None
) -> AsyncIterator[NpmClient]:
    """Run a program on a module of a client until the block ends."""
    command = ["node", str(_PROGRAMS / program), f"{MODULES}/{module}", *arguments]
    env = {"PATH": os.environ["PATH"], **(environ or {})}
    async with await anyio.open_process(command, stderr=subprocess.STDOUT, env=env) as process:
        yield NpmClient(process)
        assert process.stdin is not None
        await process.stdin.aclose()
