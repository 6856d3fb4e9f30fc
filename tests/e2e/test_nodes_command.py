"""One command starts two nodes, their database and a proxy, and ends all of them."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
import psutil
import pytest

from tests.support.live_server import DEADLINE_S, STOP_S, LiveClient, bash, script
from tests.support.program import ROOT, START_S, environment
from tests.support.repositories import lay_repository

pytestmark = pytest.mark.e2e

_NODE = re.compile(r"^Node \d is process (\d+) at (\S+)$", re.MULTILINE)
_OPEN = re.compile(r"^Open (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Started:
    """What the command told."""

    client: LiveClient
    nodes: list[psutil.Process]
    urls: list[str]


@asynccontextmanager
async def started_nodes(directory: Path, **settings: Any) -> AsyncIterator[Started]:
    """Run the command while the block does, and end it as Ctrl-C does: nothing may be left."""
    told = directory / "told"
    process = _start(directory, told, settings)
    try:
        address = await _address(process, told)
        text = told.read_text("utf-8")
        nodes = [psutil.Process(int(pid)) for pid, _ in _NODE.findall(text)]
        async with httpx.AsyncClient(base_url=address, timeout=DEADLINE_S, trust_env=False) as http:
            yield Started(LiveClient(http), nodes, [url for _, url in _NODE.findall(text)])
    except BaseException:
        sys.stderr.write((directory / "log").read_text("utf-8"))
        raise
    finally:
        begun = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        code = await anyio.to_thread.run_sync(process.wait, STOP_S)
    _, left = psutil.wait_procs(begun, timeout=STOP_S)
    assert (code, left) == (0, [])


def _start(directory: Path, told: Path, settings: dict[str, Any]) -> subprocess.Popen[bytes]:
    env = environment(directory, {"node_ttl_s": 60, **settings}, {"CANDOR_DEMO": "on"})
    with told.open("wb") as out, (directory / "log").open("wb") as err:
        command = [sys.executable, str(ROOT / "scripts/nodes.py"), "--port", "0"]
        return subprocess.Popen(command, env=env, stdout=out, stderr=err, cwd=directory)


async def _address(process: subprocess.Popen[bytes], told: Path) -> str:
    with anyio.fail_after(START_S):
        while (found := _OPEN.search(told.read_text("utf-8"))) is None:
            assert process.poll() is None
            await anyio.sleep(0.05)
    return found[1]


async def owner_of(started: Started, conversation_id: str) -> psutil.Process:
    """Return the node whose agent works on a conversation; the others list none."""
    for node, url in zip(started.nodes, started.urls, strict=True):
        async with httpx.AsyncClient(base_url=url, timeout=DEADLINE_S, trust_env=False) as http:
            agents = (await http.get("/operations")).json()["processes"]
            if any(agent["conversation_id"] == conversation_id for agent in agents):
                return node
    raise AssertionError("no node has an agent for the conversation")


async def test_a_conversation_survives_the_death_of_its_node_in_mid_turn(tmp_path: Path) -> None:
    """What the model is sent afterwards has the turn that was cut off.

    Each request goes to the next node, and the killed one is still on the proxy's list.
    """
    async with started_nodes(tmp_path) as started:
        client = started.client
        told = await client.ask("Please remember the zebra.")
        where = told["conversation_id"]
        os.mkfifo(tmp_path / "workspace" / "pipe")
        async with client.stream(script(bash("cat pipe")), where) as events:
            begun = await events.until("tool.started")
            (await owner_of(started, where)).kill()
            with suppress(httpx.HTTPError):
                await events.rest()
        async with client.follow(where, begun.id) as rest:
            ended = await rest.until("turn.completed")
        assert (ended.data["outcome"], ended.data["cause"]) == ("engine_failed", "crashed")
        for _ in started.nodes:
            again = await client.ask(script({"echo": "messages"}), where)
            assert again["outcome"] == "answered"
            assert "the zebra" in again["reply"]
            assert "cat pipe" in again["reply"]


async def test_a_conversation_goes_on_in_its_work_tree_when_its_node_has_died(
    tmp_path: Path,
) -> None:
    workspace = tmp_path / "workspace"
    await anyio.to_thread.run_sync(lambda: lay_repository(workspace, a_txt="a\n"))
    write = {"tool": "Write", "input": {"file_path": "b.txt", "content": "zebra\n"}}
    read = {"tool": "Read", "input": {"file_path": "b.txt"}}
    async with started_nodes(tmp_path, worktrees="on") as started:
        client = started.client
        where = (await client.ask(script(write, {"text": "Written."})))["conversation_id"]
        (await owner_of(started, where)).kill()
        turn = await client.ask(script(read, {"text": "Read."}), where)
        call = await client.get(f"/conversations/{where}/turns/{turn['turn_id']}/tools/1")
        assert "zebra" in call["output"]
        assert not (workspace / "b.txt").exists()
        await client.post(f"/conversations/{where}/worktree/merge")
        assert (workspace / "b.txt").read_text() == "zebra\n"


async def test_the_command_runs_a_second_time_in_the_same_place(tmp_path: Path) -> None:
    for _ in range(2):
        async with started_nodes(tmp_path) as started:
            assert (await started.client.ask("Hello."))["outcome"] == "answered"
            assert len(started.nodes) == 2
