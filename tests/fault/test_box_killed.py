"""The broker of the boxes is killed, or the server is, while a command runs."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import psutil
import pytest

from tests.support.live_server import DEADLINE_S, LiveServer, bash, running_server, script
from tests.support.walls import needs_boxes

pytestmark = [pytest.mark.fault, needs_boxes]

SLEEP = f"987{os.getpid()}"
"""No other run of these tests has it."""
LINE = f"trap '' TERM HUP; echo began; sleep {SLEEP}"


def broker_of(server: LiveServer) -> psutil.Process:
    found = []
    for one in psutil.Process(server.process.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has just ended
            found += [one] if "gateway.engine.box.broker" in " ".join(one.cmdline()) else []
    (broker,) = found
    return broker


def sleepers() -> list[psutil.Process]:
    """Return the processes that the command of a test started."""
    found = psutil.process_iter(["cmdline"])
    return [one for one in found if one.info["cmdline"] == ["sleep", SLEEP]]


async def until(done: Callable[[], bool]) -> None:
    with anyio.fail_after(DEADLINE_S / 2):
        while not done():  # noqa: ASYNC110
            await anyio.sleep(0.02)


async def test_a_command_whose_broker_is_killed_fails_and_the_next_one_runs(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, shell="sandboxed", demo_cadence_ms=0) as server,
        server.client() as client,
    ):
        conversation = server.new_conversation()
        steps = [bash(LINE), bash("echo again"), {"text": "Done."}]
        async with client.stream(script(*steps), conversation) as events:
            await events.until("tool.output")
            broker_of(server).send_signal(signal.SIGKILL)
            done = await events.until("turn.completed")
        assert [tool["status"] for tool in done.data["tools"]] == ["failed", "ok"]
        assert "The sandbox does not run at the moment" in done.data["tools"][0]["error"]
        await until(lambda: not sleepers())
        assert [row["event"] for row in server.log() if row["event"] == "box_broker_ended"]


async def test_a_server_that_is_killed_leaves_no_box_behind(tmp_path: Path) -> None:
    async with running_server(tmp_path, shell="sandboxed", demo_cadence_ms=0) as server:
        async with server.client() as client, client.stream(script(bash(LINE))) as events:
            await events.until("tool.output")
            await until(lambda: bool(sleepers()))
            broker = broker_of(server)
            await anyio.to_thread.run_sync(server.kill)
        await until(lambda: not sleepers() and not broker.is_running())
