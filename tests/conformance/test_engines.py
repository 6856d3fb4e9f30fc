"""One suite on both engines: the scripted reference, and the real agent process on the demo model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from gateway.engine.protocol import Engine
from tests.support.engine_suite import EngineSuite
from tests.support.engine_world import real_world
from tests.support.scripted_engine import ScriptedEngine


def _write_files(root: Path) -> Path:
    workspace = root / "ws"
    workspace.mkdir()
    (workspace / "a.txt").write_text("alpha\n", encoding="utf-8")
    (workspace / "b.txt").write_text("beta\n", encoding="utf-8")
    return workspace


class TestScriptedEngine(EngineSuite):
    @asynccontextmanager
    async def open(self, root: Path) -> AsyncIterator[Engine]:
        workspace = _write_files(root)
        async with anyio.create_task_group() as tasks:
            engine = ScriptedEngine(workspace, tasks)
            engine.max_retries = 1
            yield engine
            tasks.cancel_scope.cancel()


@pytest.mark.e2e
class TestSdkEngine(EngineSuite):
    @asynccontextmanager
    async def open(self, root: Path) -> AsyncIterator[Engine]:
        _write_files(root)
        async with real_world(root) as world:
            yield world.engine
