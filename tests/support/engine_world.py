"""Real agents on the demo model, in a task group of the test's own."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from gateway.demo.server import serve_demo
from gateway.engine import processes
from gateway.engine.client import SdkClient
from gateway.engine.options import AgentSetup
from gateway.engine.protocol import ClientSpec, SessionOrigin
from gateway.engine.sandbox.places import AgentPlaces, ports_named_in
from gateway.engine.sandbox.protection import Protection, protect_blocking
from gateway.engine.sdk import Review, SdkEngine, require_agent_program
from gateway.settings import Settings
from gateway.trust import approvals_file, review_folder_blocking, trust_blocking
from tests.support.engine_talk import LONG_S

MODEL = ClientSpec(model="candor-demo")
FRESH = SessionOrigin()
TOOLS = ("Read", "Write", "Bash", "Skill")


@dataclass
class RealWorld:
    """An engine, and where its agents work."""

    engine: SdkEngine
    setup: AgentSetup
    tasks: TaskGroup
    review: Review = review_folder_blocking

    async def connect(self, origin: SessionOrigin = FRESH) -> SdkClient:
        with anyio.fail_after(LONG_S):
            return await self.engine.connect(MODEL, origin)

    async def approve(self) -> None:
        """Approve the workspace's configuration as it stands, as a person would."""
        data = self.setup.cli_path.parent
        settings = Settings(workspace=self.setup.workspace, data_dir=data)
        await anyio.to_thread.run_sync(trust_blocking, settings)

    def engine_with(self, **changes: Any) -> SdkEngine:
        """Make another engine beside it, whose set-up differs."""
        return SdkEngine(replace(self.setup, **changes), self.tasks, review=self.review)


def write(path: Path, content: str) -> None:
    """Write a file, and make its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


@asynccontextmanager
async def real_world(
    root: Path,
    *,
    tools: Sequence[str] = TOOLS,
    review: Review = review_folder_blocking,
    **changes: Any,
) -> AsyncIterator[RealWorld]:
    """Run real agents below `root` until the block ends; open it in the test's body."""
    workspace, data = root / "ws", root / "data"
    workspace.mkdir(exist_ok=True)
    data.mkdir(exist_ok=True)
    program = await anyio.to_thread.run_sync(require_agent_program)
    start = await anyio.to_thread.run_sync(processes.launch_script_blocking, data, program)
    owner = await anyio.to_thread.run_sync(processes.owner_of, data)
    async with serve_demo(cadence_ms=0) as url, anyio.create_task_group() as tasks:
        setup = AgentSetup(
            cli_path=start,
            workspace=workspace,
            config_dir=data / "sessions",
            approvals_file=approvals_file(data),
            tools=tools,
            shell_commands=["ls", "cat"],
            owner=owner,
            home=root,  # the agent's shell reads the profile it finds there
            model_env={
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": "demo",
                "CLAUDE_CODE_MAX_RETRIES": "1",
            },
        )
        world = RealWorld(SdkEngine(setup, tasks), setup, tasks, review)
        world.setup = replace(setup, **changes)
        world.engine = SdkEngine(world.setup, tasks, review=review)
        try:
            yield world
        finally:
            tasks.cancel_scope.cancel()


def _raise_wall_blocking(root: Path, world: RealWorld, more: Mapping[str, Any]) -> Protection:
    """Try the wall, and have the agents of a world start behind it."""
    data = root / "data"
    given: dict[str, Any] = {
        "program": require_agent_program(),
        "workspace": world.setup.workspace,
        "own": (data / "sessions", data / "tmp"),
        "readable": (data / "home",),
        "ports": ports_named_in(world.setup.model_env),
        "private": (data,),
    }
    wall = protect_blocking("require", AgentPlaces(**{**given, **more}), data)
    processes.launch_script_blocking(data, require_agent_program(), wall.words)
    return wall


@asynccontextmanager
async def walled_world(
    root: Path, *, tools: Sequence[str] = TOOLS, **more: Any
) -> AsyncIterator[tuple[RealWorld, Protection]]:
    """Run real agents behind the strongest wall that there is; `more` replaces places that they may use."""
    data = root / "data"
    for name in ("sessions", "tmp", "home"):
        (data / name).mkdir(parents=True)
    async with real_world(root, tools=tools, temp_dir=data / "tmp", home=data / "home") as world:
        await world.approve()
        wall = await anyio.to_thread.run_sync(_raise_wall_blocking, root, world, more)
        yield world, wall
