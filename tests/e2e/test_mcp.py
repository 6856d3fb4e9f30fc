"""A real MCP server from the registry behind the real agent process."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_server import LiveServer, script, started_server
from tests.support.mcp_servers import settings_with

pytestmark = pytest.mark.e2e

TIME = str(Path(sys.executable).parent / "mcp-server-time")
FROM_TOKYO = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "Asia/Kolkata"}


@pytest.fixture(scope="module")
def time_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    root = tmp_path_factory.mktemp("mcp")
    table = {"command": [TIME], "tools": ["convert_time"], "reading": ["convert_time"]}
    file = settings_with(root, {"time": table, "gone": {"command": ["/bin/false"]}}).mcp_file
    settings: dict[str, Any] = {"demo_cadence_ms": 0, "mcp_file": file, "web_fetch": "public"}
    with started_server(root / "server", **settings) as server:
        yield server


async def test_the_agent_calls_a_tool_of_the_server(time_server: LiveServer) -> None:
    steps = (
        {"tool": "mcp__time__convert_time", "input": FROM_TOKYO},
        {"tool": "mcp__time__get_current_time", "input": {"timezone": "Asia/Tokyo"}},
        {"text": "Done."},
    )
    async with time_server.client() as client:
        result = await client.ask(script(*steps))
        call, other = result["tools"]
        assert (call["name"], call["status"]) == ("mcp__time__convert_time", "ok")
        assert other["status"] != "ok", "the file does not name it"
        conversation, turn = result["conversation_id"], result["turn_id"]
        whole = await client.get(f"/conversations/{conversation}/turns/{turn}/tools/1")
        assert "-3.5h" in str(whole["output"])
    rules = [line["rule"] for line in time_server.journal(result) if line["kind"] == "permission"]
    assert rules[0] == "own_tool"


async def test_a_page_inside_is_refused_and_the_person_reads_why(time_server: LiveServer) -> None:
    inside = f"{time_server.url}/readyz"
    call = {"tool": "mcp__web__web_fetch", "input": {"url": inside}}
    async with time_server.client() as client:
        (tool,) = (await client.ask(script(call, {"text": "Done."})))["tools"]
        assert (tool["status"], tool["summary"]) == ("failed", inside)
        assert tool["error"].startswith("Only plain http and https addresses of public hosts")
        part = (await client.get("/readyz"))["parts"]["web"]
        assert part == {"ok": True, "state": "public", "search": "off"}


async def test_servers_tools_and_states_are_listed(time_server: LiveServer) -> None:
    async with time_server.client() as client:
        ready = await client.get("/readyz")
        part = ready["parts"]["mcp_servers"]
        assert (ready["ready"], part["ok"], part["state"]) == (True, True, "degraded")
        time, gone = (await client.get("/mcp-servers"))["servers"]
        assert (time["name"], time["transport"], time["state"]) == ("time", "stdio", "running")
        assert time["tools"] == [
            {
                "name": "mcp__time__convert_time",
                "state": "offered",
                "effect": "reading",
                "ask": "changes",
            }
        ]
        assert (gone["name"], gone["tools"]) == ("gone", [])
        assert gone["state"] != "running"
        assert "/bin/false" not in str(gone)
