"""All MCP servers of a gateway: what agents are offered, how it is judged, who answers it.

Agents see the accepted definitions, also while a server is down; see `definitions`. A tool that
waits for the operator is not offered, and the policy does not know it.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from gateway.engine.own_tools import OwnAnswer, OwnServer, OwnTool
from gateway.mcp_servers.accepted_tools import AcceptedTools
from gateway.mcp_servers.connection import McpConnection, OpenTransport
from gateway.mcp_servers.definitions import Definitions, Review, ToolDefinition, review
from gateway.mcp_servers.plan import ServerPlan
from gateway.mcp_servers.transports import transport_of
from memory.background import keep_running
from policies.calls import OwnToolRule

_log = logging.getLogger(__name__)

_FIRST_WAIT_S: Final = 15.0
"""How long the start of the gateway waits for servers whose tools it does not know yet."""
_LOOK_S: Final = 2.0
"""How often the gateway looks whether the operator has accepted something."""

OnFailure = Callable[[str], None]


class _Server:
    def __init__(self, plan: ServerPlan, accepted: Definitions | None) -> None:
        self.plan = plan
        self.listed: Sequence[ToolDefinition] | None = None
        self.take(accepted)

    def take(self, accepted: Definitions | None) -> Review:
        """Judge the tools anew, by what was accepted."""
        self.is_known = accepted is not None
        found = review(self.plan.config.tools, accepted, self.listed or ())
        self.tools = found
        tools = tuple(
            OwnTool(tool.name, tool.description, tool.input_schema, is_foreign=True)
            for tool in found.offered
        )
        digests = "".join(tool.digest for tool in found.offered)
        revision = hashlib.sha256(digests.encode()).hexdigest()[:16]
        self.offer = OwnServer(self.plan.name, tools, revision=revision)
        return found


class McpServers:
    """Implements `ToolSource`."""

    def __init__(
        self,
        plans: Sequence[ServerPlan],
        accepted: AcceptedTools,
        open_transport: OpenTransport = transport_of,
    ) -> None:
        """Blocks on the files of accepted tools. Raise `StartError` if they are damaged."""
        known = accepted.accepted_blocking() if plans else {}
        self._accepted = accepted
        self._stamp = accepted.stamp_blocking() if plans else 0
        self._servers = {plan.name: _Server(plan, known.get(plan.name)) for plan in plans}
        self._connections = {
            plan.name: McpConnection(plan, open_transport, partial(self._list, plan.name))
            for plan in plans
        }
        self._to_store = anyio.Event()

    async def start(self, tasks: TaskGroup, on_failure: OnFailure) -> None:
        """Start all servers; wait, within a bound, for those whose tools nobody knows yet."""
        for connection in self._connections.values():
            tasks.start_soon(connection.run)
        if self._servers:
            tasks.start_soon(keep_running, "mcp_servers", self._run, on_failure)
        with anyio.move_on_after(_FIRST_WAIT_S):
            for name, server in self._servers.items():
                if not server.is_known:
                    await self._connections[name].tried.wait()

    def servers(self) -> Sequence[OwnServer]:
        """Return the servers that have a tool to offer."""
        return [server.offer for server in self._servers.values() if server.offer.tools]

    def rule_of(self, name: str) -> OwnToolRule | None:
        """Return the policy's rule of a tool by its full name."""
        server, tool = self._find(name)
        return None if server is None or tool is None else server.plan.config.rule_of(tool)

    async def __call__(self, name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
        """Answer a call."""
        server, tool = self._find(name)
        if server is None or tool is None:
            return OwnAnswer("This tool is not offered any more.", is_error=True)
        return await self._connections[server.plan.name].call(tool, arguments)

    def _find(self, name: str) -> tuple[_Server | None, str | None]:
        prefix, _, rest = name.partition("__")
        server = self._servers.get(rest.partition("__")[0]) if prefix == "mcp" else None
        tool = rest.partition("__")[2]
        is_offered = server is not None and any(
            offered.name == tool for offered in server.offer.tools
        )
        return (server, tool) if is_offered else (None, None)

    async def ping(self) -> Mapping[str, str]:
        """Return the state of all servers in short."""
        if not self._servers:
            return {"state": "off"}
        states = [connection.state for connection in self._connections.values()]
        running = states.count("running")
        waits = any(server.tools.waiting for server in self._servers.values())
        is_well = running == len(states) and not waits
        state = "ok" if is_well else "degraded"
        return {"state": state, "detail": f"{running}/{len(states)}"}

    def describe(self) -> list[dict[str, Any]]:
        """Return servers, tools and states for `GET /mcp-servers`."""
        return [
            {
                "name": name,
                "transport": server.plan.transport,
                "state": self._connections[name].state,
                "error": self._connections[name].fault,
                "box": server.plan.box,
                "tools": list(_describe_tools(server)),
            }
            for name, server in self._servers.items()
        ]

    def _list(self, name: str, listed: Sequence[ToolDefinition]) -> None:
        server = self._servers[name]
        before = server.tools.waiting
        server.listed = listed
        found = server.take(self._known(server))
        server.is_known = True
        self._to_store.set()
        for tool in found.waiting.keys() - before.keys():
            _log.warning(
                "mcp_tool_waits", extra={"server": name, "tool": tool, "state": found.states[tool]}
            )

    def _known(self, server: _Server) -> Definitions | None:
        return server.tools.accepted if server.is_known else None

    async def _run(self) -> None:
        """Store what was seen, and take over what the operator accepts."""
        while True:
            with anyio.move_on_after(_LOOK_S):
                await self._to_store.wait()
            if self._to_store.is_set():
                self._to_store = anyio.Event()
                await self._store()
            if await anyio.to_thread.run_sync(self._accepted.stamp_blocking) != self._stamp:
                known = await anyio.to_thread.run_sync(self._accepted.accepted_blocking)
                self._stamp = await anyio.to_thread.run_sync(self._accepted.stamp_blocking)
                for name, server in self._servers.items():
                    server.take(known.get(name, self._known(server)))
                self._to_store.set()  # less may wait now

    async def _store(self) -> None:
        try:
            await anyio.to_thread.run_sync(self._store_blocking)
        except Exception:
            self._to_store.set()
            raise

    def _store_blocking(self) -> None:
        for name, server in self._servers.items():
            if server.listed is None:
                continue
            found = server.tools
            stored = self._accepted.accepted_blocking().get(name, {})
            if fresh := {tool: one for tool, one in found.accepted.items() if tool not in stored}:
                self._accepted.accept_blocking(name, fresh)
            self._accepted.keep_waiting_blocking(name, found.waiting)


def _describe_tools(server: _Server) -> Iterator[dict[str, Any]]:
    for tool, state in sorted(server.tools.states.items()):
        rule = server.plan.config.rule_of(tool)
        yield {
            "name": f"mcp__{server.plan.name}__{tool}",
            "state": state,
            "effect": "changing" if rule.changes else "reading",
            "ask": rule.ask,
        }
