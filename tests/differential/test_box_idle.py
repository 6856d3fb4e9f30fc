"""A broker that nobody needs ends, and another one runs the next command."""

import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import anyio
import psutil
import pytest

from gateway.engine.box.choice import make_box_blocking
from gateway.engine.box.outputs import CommandOutputs
from gateway.engine.box.process import Box, open_broker
from gateway.engine.environment import KEEPS
from gateway.settings import Settings
from policies.rules import shipped_rules
from tests.support.walls import needs_boxes

pytestmark = needs_boxes

DEADLINE_S = 60.0


class Hasty(Box):
    """A box whose broker has little patience."""

    def command(self, listener: socket.socket) -> list[str]:
        *start, code = Box.command(self, listener)
        setup, _, call = code.rpartition("; ")
        hasty = "import gateway.engine.box.broker as broker; broker.IDLE_S = 0.3"
        return [*start, f"{setup}; {hasty}; {call}"]


def count_brokers() -> int:
    count = 0
    for child in psutil.Process().children():
        with suppress(psutil.Error):  # it has just ended
            count += "gateway.engine.box.broker" in " ".join(child.cmdline())
    return count


async def until_there_are(count: int) -> None:
    with anyio.fail_after(DEADLINE_S):
        while await anyio.to_thread.run_sync(count_brokers) != count:  # noqa: ASYNC110
            await anyio.sleep(0.02)


def run(box: Box, line: str) -> str:
    done = subprocess.run(
        [str(box.prefix), line],
        env={"PATH": os.defpath, KEEPS: "PATH"},
        cwd=box.plan.workspace,
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    return done.stdout


@pytest.fixture
def box(tmp_path: Path) -> Box:
    for name in ("ws", "data", "data/tmp"):
        (tmp_path / name).mkdir()
    settings = Settings(workspace=tmp_path / "ws", data_dir=tmp_path / "data", shell="sandboxed")
    box = make_box_blocking(settings, shipped_rules(), tmp_path / "data/tmp", {})
    assert box is not None
    return Hasty(folder=box.folder, plan=box.plan)


async def test_an_idle_broker_ends_and_the_next_command_finds_another(
    box: Box, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_broker(box, CommandOutputs()):
        await until_there_are(1)
        await until_there_are(0)
        for word in ("one", "two"):
            assert await anyio.to_thread.run_sync(run, box, f"echo {word}") == f"{word}\n"
            await until_there_are(0)
    assert [record.message for record in caplog.records if "box_broker" in record.message] == []
