"""The server is killed: its agents end soon after, and the next start finds what is left of them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import psutil
import pytest
from anyio.abc import SocketStream

from gateway.engine import processes
from gateway.engine.client import SdkClient
from gateway.engine.options import AgentSetup
from gateway.engine.processes import MARK
from gateway.engine.sdk import SdkEngine, require_agent_program
from gateway.relay.supervisor import open_relay
from gateway.relay.upstream import Target
from tests.support.child_programs import command, say
from tests.support.engine_processes import is_active, wait_gone
from tests.support.engine_stub import STAYS, write_agent
from tests.support.engine_talk import LONG_S, prompt, until
from tests.support.engine_world import FRESH, MODEL, real_world
from tests.support.relays import service

pytestmark = pytest.mark.fault

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def agent_behind_relay(root: Path, agent: Path, url: str) -> AsyncIterator[SdkClient]:
    """Start an agent as the server does, and yield its client."""
    start = await anyio.to_thread.run_sync(processes.launch_script_blocking, root, agent)
    async with open_relay(Target(url=url), {}) as relay, anyio.create_task_group() as tasks:
        setup = AgentSetup(
            cli_path=start,
            workspace=root,
            config_dir=root,
            tools=[],
            shell_commands=[],
            owner="server-to-kill",
            model_env={"ANTHROPIC_BASE_URL": relay.url},
            relay=relay,
        )
        yield (client := await SdkEngine(setup, tasks).connect(MODEL, FRESH))
        await client.kill()


async def serve(root: str, agent: str) -> None:
    """Start an agent and say so."""
    async with agent_behind_relay(Path(root), Path(agent), "http://127.0.0.1:9") as client:
        say(pid=client.pid)
        await anyio.sleep_forever()


def close_input_blocking(pid: int) -> None:
    """Close the other end of a process's standard input, as the kernel does when its parent is killed."""
    pipe = Path(f"/proc/{pid}/fd/0").readlink()
    with Path(os.devnull).open("wb") as nothing:
        for entry in Path("/proc/self/fd").iterdir():
            with suppress(OSError):
                if entry.readlink() == pipe:
                    os.dup2(nothing.fileno(), int(entry.name))


@contextmanager
def sleeper(mark: str | None, *command: str) -> Iterator[psutil.Process]:
    """Run a process that carries a mark."""
    env = {**os.environ, **({} if mark is None else {MARK: mark})}
    started = subprocess.Popen([*command] if command else ["sleep", "300"], env=env)
    try:
        yield psutil.Process(started.pid)
    finally:
        started.kill()
        started.wait()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the Linux kernel")
async def test_an_agent_does_not_outlive_a_killed_server(tmp_path: Path) -> None:
    """The stub stays when its input ends, so it is the launcher's request that ends it."""
    agent = write_agent(tmp_path / "stub", after=STAYS)
    server = await anyio.open_process(command(serve, tmp_path, agent), cwd=ROOT, stderr=None)
    async with server:
        assert server.stdout is not None
        with anyio.fail_after(LONG_S):
            pid = json.loads(await server.stdout.receive())["pid"]
        left = psutil.Process(server.pid).children(recursive=True)
        assert is_active(psutil.Process(pid))
        assert psutil.Process(pid) in left
        server.send_signal(signal.SIGKILL)
        await wait_gone(left)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the Linux kernel")
async def test_a_prompt_whose_commit_a_kill_forestalled_never_reaches_the_model(
    tmp_path: Path,
) -> None:
    """Linux closes a killed process's pipes before it signals the children: the relay holds what comes between."""
    asked = anyio.Event()

    async def answer(stream: SocketStream) -> None:
        asked.set()
        await stream.receive()

    async def commit() -> str:
        assert client.pid is not None
        await anyio.to_thread.run_sync(close_input_blocking, client.pid)
        await anyio.sleep_forever()
        return ""

    program = await anyio.to_thread.run_sync(require_agent_program)
    async with service(answer) as url, agent_behind_relay(tmp_path, program, url) as client:
        await client.start_run(replace(prompt("hello"), context=commit))
        with anyio.move_on_after(3):
            await asked.wait()
        assert not asked.is_set()


async def test_a_start_ends_what_the_last_run_left_and_nothing_else(tmp_path: Path) -> None:
    stubborn = (
        sys.executable,
        "-c",
        (
            "import signal,time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); "
            "time.sleep(300)"
        ),
    )
    parent = ("sh", "-c", "env -i sleep 300 & wait")
    async with real_world(tmp_path) as world:
        owner = world.setup.owner
        with (
            sleeper(f"{owner}:one") as polite,
            sleeper(f"{owner}:two", *stubborn) as ignoring,
            sleeper(f"{owner}:three", *parent) as family,
            sleeper("another:one") as foreign,
            sleeper(f"{owner}0:one") as alike,
            sleeper(None) as plain,
        ):
            await until(lambda: bool(family.children()), pause_s=0.01)
            (child,) = family.children()
            assert await world.engine.end_orphans() >= 3
            assert not any(map(is_active, (polite, ignoring, family, child)))
            assert all(map(is_active, (foreign, alike, plain)))
            assert await world.engine.end_orphans() == 0
