"""The server is killed: its agents end soon after, and the next start finds what is left of them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import psutil
import pytest
from anyio.abc import SocketAttribute, SocketStream

from gateway.engine.processes import MARK
from tests.support.engine_processes import is_active, wait_gone
from tests.support.engine_stub import STAYS, write_agent
from tests.support.engine_talk import LONG_S, until
from tests.support.engine_world import real_world

pytestmark = pytest.mark.fault

ROOT = Path(__file__).parents[2]

_SERVER = """
import sys
from pathlib import Path
import anyio
from gateway.engine import processes
from gateway.engine.options import AgentSetup
from gateway.engine.protocol import ClientSpec, SessionOrigin
from gateway.engine.sdk import SdkEngine

async def main():
    root = Path(sys.argv[1])
    start = processes.launch_script_blocking(root, Path(sys.argv[2]))
    setup = AgentSetup(cli_path=start, workspace=root, config_dir=root, tools=[], shell_commands=[],
                       owner="server-to-kill")
    async with anyio.create_task_group() as tasks:
        client = await SdkEngine(setup, tasks).connect(ClientSpec(), SessionOrigin())
        print(client.pid, flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


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
    server = await anyio.open_process(
        [sys.executable, "-c", _SERVER, str(tmp_path), str(agent)], cwd=ROOT, stderr=None
    )
    async with server:
        assert server.stdout is not None
        with anyio.fail_after(LONG_S):
            pid = int((await server.stdout.receive()).decode())
        left = psutil.Process(pid)
        assert is_active(left)
        server.send_signal(signal.SIGKILL)
        await wait_gone([left])


_ASKING = """
import sys
from pathlib import Path
import anyio
from gateway.engine import processes
from gateway.engine.options import AgentSetup
from gateway.engine.protocol import SessionOrigin
from gateway.engine.sdk import SdkEngine, require_agent_program
from gateway.relay.supervisor import open_relay
from gateway.relay.upstream import Target
from tests.support.engine_talk import prompt
from tests.support.engine_world import MODEL
from dataclasses import replace

async def commit():
    print("ASKED", flush=True)
    await anyio.sleep_forever()

async def main():
    root = Path(sys.argv[1])
    start = processes.launch_script_blocking(root, require_agent_program())
    async with open_relay(Target(url=sys.argv[2]), {}) as relay, anyio.create_task_group() as tasks:
        setup = AgentSetup(cli_path=start, workspace=root, config_dir=root, tools=[], shell_commands=[],
                           owner="server-to-kill", model_env={"ANTHROPIC_BASE_URL": relay.url}, relay=relay)
        client = await SdkEngine(setup, tasks).connect(MODEL, SessionOrigin())
        await client.start_run(replace(prompt("hello"), context=commit))
        await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the Linux kernel")
async def test_a_prompt_whose_commit_a_kill_forestalled_never_reaches_the_model(
    tmp_path: Path,
) -> None:
    """Linux closes a killed process's pipes before it signals the children: the relay holds what comes between."""
    asked: list[bytes] = []

    async def answer(stream: SocketStream) -> None:
        async with stream:
            head = await stream.receive()
            asked.extend([head] if b"/v1/messages" in head else [])
            await stream.send(b"HTTP/1.1 500 -\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(SocketAttribute.local_port)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, answer)
            command = [sys.executable, "-c", _ASKING, str(tmp_path), f"http://127.0.0.1:{port}"]
            server = await anyio.open_process(command, cwd=ROOT, stderr=None)
            async with server:
                assert server.stdout is not None
                with anyio.fail_after(LONG_S):
                    assert await server.stdout.receive() == b"ASKED\n"
                left = psutil.Process(server.pid).children(recursive=True)
                server.send_signal(signal.SIGKILL)
                await wait_gone(left)
            tasks.cancel_scope.cancel()
    assert (bool(left), asked) == (True, [])


async def test_a_start_ends_what_the_last_run_left_and_nothing_else(tmp_path: Path) -> None:
    stubborn = (
        sys.executable,
        "-c",
        "import signal,time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(300)",
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
