"""The gateway is killed: its MCP servers end with it, and so does what they started."""

import json
from pathlib import Path

import psutil
import pytest

from tests.support.engine_processes import wait_gone
from tests.support.live_server import running_server, script
from tests.support.mcp_servers import own_server, settings_with, write_tools

pytestmark = pytest.mark.fault


async def test_a_killed_gateway_leaves_no_server_and_nothing_that_one_started(
    tmp_path: Path,
) -> None:
    """The server hears no signal and not that its input has ended; its child has detached and cleared
    its environment.
    """
    write_tools(tmp_path, act="Acts.")
    table = own_server(tmp_path, reading=["act"])
    file = settings_with(tmp_path, {"own": table}).mcp_file
    async with running_server(tmp_path / "server", mcp_file=file) as server:
        async with server.client() as client:
            call = {"tool": "mcp__own__act", "input": {"do": "child"}}
            result = await client.ask(script(call, {"text": "Done."}))
            path = f"/conversations/{result['conversation_id']}/turns/{result['turn_id']}/tools/1"
            pids = json.loads((await client.get(path))["output"])
        started = [psutil.Process(pid) for pid in pids]
        assert len(started) == 2
        server.kill()
        await wait_gone(started)
