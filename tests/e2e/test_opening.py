"""A real agent process that is woken because somebody opens its conversation."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.live_server import running_server, script
from tests.support.recording_model import recording_model

pytestmark = pytest.mark.e2e


def said(data_dir: Path) -> dict[str, list[str]]:
    """Return the rows of each session's transcript that a model would see."""
    files = data_dir.glob("sessions/projects/*/*.jsonl")
    kinds = ('"type":"user"', '"type":"assistant"', '"type":"system"')
    return {
        file.stem: [row for row in file.read_text().splitlines() if any(k in row for k in kinds)]
        for file in files
    }


def only_prewarmed(operations: dict[str, Any]) -> bool:
    """Return whether the warm-up has ended, its transcript gone, and every other agent."""
    return (operations["prewarmed"], operations["processes"]) == (1, [])


async def test_an_opened_conversation_is_awake_before_its_message_and_leaves_no_trace_without_one(
    tmp_path: Path,
) -> None:
    async with recording_model() as model:
        environ = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none"}
        settings = {"model": "candor-demo", "prewarmed_clients": 1, "idle_client_s": 3.0}
        async with (
            running_server(tmp_path, command=None, environ=environ, **settings) as server,
            server.client() as client,
        ):
            first = await client.ask("the secret word is heron")
            path = f"/conversations/{first['conversation_id']}"
            await client.wait_until("/operations", only_prewarmed)
            stored, requests = said(tmp_path / "data"), len(model.bodies)
            await client.get(f"{path}/messages")
            await client.wait_until(path, lambda known: known["hot"])
            await client.wait_until("/operations", only_prewarmed)
            assert said(tmp_path / "data") == stored
            assert len(model.bodies) == requests
            echo = script({"echo": "messages"})
            assert "heron" in (await client.ask(echo, first["conversation_id"]))["reply"]
            await client.wait_until("/operations", only_prewarmed)
            await client.get(f"{path}/messages")
            await client.wait_until(path, lambda known: known["hot"])
            woken = await client.ask(echo, first["conversation_id"])
            assert "heron" in woken["reply"]
            assert woken["notices"] == []
            (process,) = (await client.get("/operations"))["processes"]
            assert process["state"] == "idle"
