"""MCP servers for tests: the file that names them, and their sessions."""

import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from gateway.engine.own_tools import OwnAnswer
from gateway.mcp_servers.accepted_tools import MCP_FOLDER, AcceptedTools
from gateway.mcp_servers.plan import ServerPlan, plan_servers_blocking
from gateway.mcp_servers.servers import McpServers
from gateway.settings import Settings
from tests.support.services import settings_below

PROGRAM = Path(__file__).with_name("mcp_server.py")
LIMIT_S = 60


def toml(table: Mapping[str, Any]) -> str:
    """Write the keys of a table; JSON's texts, numbers, flags and lists are TOML's."""
    return "".join(f"{key} = {_value(value)}\n" for key, value in table.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(str(value) if isinstance(value, Path) else value)


def settings_with(root: Path, servers: Mapping[str, Mapping[str, Any]], **more: Any) -> Settings:
    """Return settings below `root` with these servers in a file."""
    file = root / "mcp.toml"
    text = "".join(f"[servers.{name}]\n{toml(table)}\n" for name, table in servers.items())
    file.write_text(text, encoding="utf-8")
    settings = settings_below(root, mcp_file=file, **more)
    for folder in (settings.workspace, settings.data_dir, settings.log_dir):
        folder.mkdir(exist_ok=True)
    return settings


def write_tools(root: Path, **descriptions: str) -> Path:
    """Write which tools the server of the tests has; return the file."""
    file = root / "tools.json"
    file.write_text(json.dumps(descriptions), encoding="utf-8")
    return file


def own_server(root: Path, **more: Any) -> dict[str, Any]:
    """Return the table of the server of the tests, whose tools `write_tools` wrote."""
    file = root / "tools.json"
    return {
        "command": [sys.executable, str(PROGRAM), str(file)],
        "reads": [str(PROGRAM), str(file), *more.pop("reads", ())],
        **more,
    }


@dataclass(frozen=True, slots=True)
class Running:
    """Servers that run."""

    servers: McpServers
    accepted: AcceptedTools

    async def call(self, server: str, tool: str, **arguments: Any) -> OwnAnswer:
        """Call a tool."""
        with anyio.fail_after(LIMIT_S):
            return await self.servers(f"mcp__{server}__{tool}", arguments)

    def states(self, server: str) -> dict[str, str]:
        """Return the states of a server's tools by their names."""
        (found,) = [one for one in self.servers.describe() if one["name"] == server]
        return {tool["name"].rpartition("__")[2]: tool["state"] for tool in found["tools"]}

    def offered(self) -> dict[str, list[str]]:
        """Return the names of the tools that agents get, by server."""
        return {
            server.name: [tool.name for tool in server.tools] for server in self.servers.servers()
        }

    async def until_stored(self, does: Callable[[AcceptedTools], bool]) -> None:
        """Wait until the files of accepted tools are so."""
        with anyio.fail_after(LIMIT_S):
            while not await anyio.to_thread.run_sync(does, self.accepted):  # noqa: ASYNC110
                await anyio.sleep(0.01)

    async def accept(self, server: str) -> None:
        """Accept what waits of a server, as `candor mcp accept` does in a process of its own."""
        await self.until_stored(lambda tools: bool(tools.waiting_blocking().get(server)))

        def accept_blocking() -> None:
            self.accepted.accept_blocking(server, self.accepted.waiting_blocking()[server])

        await anyio.to_thread.run_sync(accept_blocking)

    async def until_offered(self, server: str) -> None:
        """Wait until the tools of a server are offered: a first import may take long."""
        with anyio.fail_after(LIMIT_S):
            while server not in self.offered():  # noqa: ASYNC110
                await anyio.sleep(0.01)

    async def until_states(self, server: str, **states: str) -> None:
        """Wait until the tools of a server are in these states."""
        with anyio.fail_after(LIMIT_S):
            while self.states(server) != states:  # noqa: ASYNC110
                await anyio.sleep(0.01)


async def plan(
    settings: Settings, environ: Mapping[str, str] | None = None
) -> tuple[ServerPlan, ...]:
    """Return the plans of a settings' servers."""
    return await anyio.to_thread.run_sync(plan_servers_blocking, settings, environ or {})


@asynccontextmanager
async def running(
    settings: Settings, environ: Mapping[str, str] | None = None
) -> AsyncIterator[Running]:
    """Start the servers of the file while the block runs; none may be left afterwards."""
    accepted = AcceptedTools(settings.data_dir / MCP_FOLDER)
    plans = await plan(settings, environ)
    servers = await anyio.to_thread.run_sync(McpServers, plans, accepted)
    failures: list[str] = []
    async with anyio.create_task_group() as tasks:
        await servers.start(tasks, failures.append)
        yield Running(servers, accepted)
        tasks.cancel_scope.cancel()
    assert failures == []
