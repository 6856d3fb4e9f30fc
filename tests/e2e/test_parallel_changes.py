"""Two conversations that change the same files, through the real agent process."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from tests.support.engine_talk import bash, until
from tests.support.live_server import LiveClient, LiveServer, script

pytestmark = pytest.mark.e2e

_PAUSE_S = 0.02


def open_for_writing(pipe: Path) -> int | None:
    """Open a pipe that a command reads; None while none does."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


class Outcome:
    """The result of a turn that runs beside the test."""

    def __init__(self) -> None:
        self.result: dict[str, Any] = {}

    @property
    def status(self) -> str:
        """The status of its first call."""
        return str(self.result["tools"][0]["status"])


@asynccontextmanager
async def turn(client: LiveClient, message: str, conversation: str) -> AsyncIterator[Outcome]:
    """Run a turn while the block does; its result is there at the end of the block."""
    outcome = Outcome()

    async def run() -> None:
        outcome.result = await client.ask(message, conversation)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        yield outcome


@asynccontextmanager
async def long_change(
    server: LiveServer, client: LiveClient, conversation: str, name: str
) -> AsyncIterator[tuple[int, Outcome]]:
    """Run a command that writes a file during the block; it ends when the descriptor is closed."""
    pipe = server.make_pipe(f"{name}.pipe")
    message = script(bash(f"cp {name}.pipe {name}.txt"), {"text": "Copied."})
    descriptor: int | None = None

    def begun() -> bool:
        nonlocal descriptor
        descriptor = open_for_writing(pipe)
        return descriptor is not None

    async with turn(client, message, conversation) as outcome:
        await until(begun, pause_s=_PAUSE_S)
        assert descriptor is not None
        yield descriptor, outcome


async def reads(client: LiveClient, conversation: str) -> None:
    """Run a turn of another conversation that reads."""
    result = await client.ask(script(bash("ls"), {"text": "Read."}), conversation)
    assert result["outcome"] == "answered"


@pytest.fixture(scope="module")
def two(server: LiveServer) -> tuple[str, str]:
    """Two conversations."""
    return server.new_conversation(), server.new_conversation()


async def test_a_change_waits_for_the_one_of_another_conversation_and_reading_does_not(
    server: LiveServer, two: tuple[str, str], conversation: str
) -> None:
    first, second = two
    made = server.workspace / "made"
    async with (
        server.client() as client,
        long_change(server, client, first, "slow") as (descriptor, copied),
        client.stream(script(bash("mkdir made"), {"text": "Made."}), second) as events,
    ):
        await events.until("tool.started")
        await reads(client, conversation)
        assert not made.exists()
        os.write(descriptor, b"through\n")
        os.close(descriptor)
        result = (await events.until("turn.completed")).data
    assert (copied.status, result["tools"][0]["status"]) == ("ok", "ok")
    assert (server.workspace / "slow.txt").read_text("utf-8") == "through\n"
    assert made.is_dir()


async def interrupt(server: LiveServer, client: LiveClient, conversation: str, name: str) -> None:
    del server, name
    await client.post(f"/conversations/{conversation}/interrupt", status=202)


async def kill(server: LiveServer, client: LiveClient, conversation: str, name: str) -> None:
    """Kill the agent process of the command, and not the command."""
    del client, conversation
    agents = server.agents()
    found = []
    for one in agents.values():
        with suppress(psutil.NoSuchProcess):  # it has just ended
            found += [one] if one.cmdline()[-1:] == [f"{name}.txt"] else []
    (command,) = found
    *_, agent = (parent for parent in command.parents() if parent.pid in agents)
    await anyio.to_thread.run_sync(agent.kill)


@pytest.mark.parametrize("end", [interrupt, kill])
async def test_a_change_whose_run_ends_is_over_when_the_next_one_runs(
    server: LiveServer, two: tuple[str, str], end: Callable[..., Awaitable[None]]
) -> None:
    (first, second), name = two, end.__name__
    async with (
        server.client() as client,
        long_change(server, client, first, name) as (descriptor, _),
    ):
        await end(server, client, first, name)
        result = await client.ask(script(bash(f"mkdir {name}"), {"text": "Made."}), second)
        assert result["tools"][0]["status"] == "ok"
        with pytest.raises(BrokenPipeError):
            os.write(descriptor, b"nobody reads any more")
        os.close(descriptor)


INSIDE = {"n.txt": "n", "a.txt": "alpha", "other.txt": "kept"}


async def test_what_a_person_agreed_to_does_not_run_on_another_file(
    asking_server: LiveServer, asking_conversation: str
) -> None:
    """While the first one is asked, the second conversation puts a link in the place of its target."""
    first, second = asking_conversation, asking_server.new_conversation()
    place = asking_server.workspace
    for name, text in INSIDE.items():
        (place / name).write_text(text, encoding="utf-8")
    (place / "inlink").symlink_to("other.txt")
    async with (
        asking_server.client() as client,
        client.stream(script(bash("cp a.txt n.txt"), {"text": "Copied."}), first) as copying,
        client.stream(script(bash("mv inlink n.txt"), {"text": "Moved."}), second) as moving,
    ):
        copy = (await copying.until("approval.requested")).data["approval_id"]
        move = (await moving.until("approval.requested")).data["approval_id"]
        await client.post(f"/approvals/{move}", decision="allow")
        moved = (await moving.until("turn.completed")).data
        await client.post(f"/approvals/{copy}", decision="allow")
        copied = (await copying.until("turn.completed")).data
    assert moved["tools"][0]["status"] == "ok"
    assert copied["tools"][0]["status"] == "denied"
    assert "has changed since it was judged" in copied["tools"][0]["error"]
    assert (place / "other.txt").read_text("utf-8") == "kept"
