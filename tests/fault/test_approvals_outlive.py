"""Approvals that were pending when the real server ended: they are listed, and answered exactly once."""

import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.live_server import LiveClient, LiveServer, bash, running_server, script

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
]

ASKING = {"approvals": "on", "prewarmed_clients": 0, "shutdown_grace_s": 0.2}
ENDINGS = [signal.SIGTERM, signal.SIGKILL]


@asynccontextmanager
async def ended_while_asked(
    root: Path, ending: signal.Signals
) -> AsyncIterator[tuple[LiveServer, LiveClient, dict[str, Any]]]:
    """A restarted server, and what was asked when the one before it ended: whether `gone.txt` may go."""
    async with running_server(root, **ASKING) as first, first.client() as client:
        await anyio.Path(first.workspace / "gone.txt").write_text("x")
        async with client.stream(script(bash("rm gone.txt"), {"text": "Gone."})) as events:
            asked = (await events.until("approval.requested")).data
            if ending == signal.SIGKILL:
                first.kill()
            else:
                first.signal(ending)
                assert await first.wait_ended() == 0
    async with running_server(root, **ASKING) as second, second.client() as client:
        yield second, client, asked


@pytest.mark.parametrize("ending", ENDINGS)
async def test_after_a_restart_a_message_runs_and_a_yes_runs_the_call_exactly_once(
    tmp_path: Path, ending: signal.Signals
) -> None:
    async with ended_while_asked(tmp_path, ending) as (server, client, asked):
        place = f"/conversations/{asked['conversation_id']}"
        gone = anyio.Path(server.workspace / "gone.txt")
        (listed,) = (await client.get("/approvals"))["approvals"]
        assert (listed["approval_id"], listed["state"]) == (asked["approval_id"], "waiting")
        assert listed["input"] == {"command": "rm -- gone.txt"}
        told = (await client.get(f"{place}/messages"))["messages"][-1]["result"]
        assert (told["outcome"], told["cause"]) == ("interrupted", "waiting")
        meanwhile = await client.ask(script({"text": "Here."}), asked["conversation_id"])
        assert (meanwhile["outcome"], await gone.exists()) == ("answered", True)

        path = f"/approvals/{asked['approval_id']}"
        answer = await client.post(path, decision="allow")
        await client.post(path, status=409, decision="allow")
        run = (await client.replay(asked["conversation_id"], answer["turn_id"]))[-1].data

        assert run["outcome"] == "answered"
        assert [use["status"] for use in run["tools"]] == ["ok"]
        assert run["tools"][0]["allowed_by"]["approval_id"] == asked["approval_id"]
        assert not await gone.exists()
        assert (await client.get("/approvals"))["approvals"] == []
        messages = (await client.get(f"{place}/messages"))["messages"]
        assert len(messages) == 6, "asked, meanwhile, and one run"


@pytest.mark.parametrize("ending", ENDINGS)
async def test_after_a_restart_a_no_runs_nothing(tmp_path: Path, ending: signal.Signals) -> None:
    async with ended_while_asked(tmp_path, ending) as (server, client, asked):
        path = f"/approvals/{asked['approval_id']}"
        assert (await client.post(path, decision="deny"))["turn_id"] is None
        await client.post(path, status=409, decision="allow")
        state = await client.get(f"/conversations/{asked['conversation_id']}")
        assert (state["state"], state["queue"]) == ("idle", [])
        assert await anyio.Path(server.workspace / "gone.txt").exists()
