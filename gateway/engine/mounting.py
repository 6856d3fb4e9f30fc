"""Mounts the gateway's own tools in an agent process, as servers inside this one."""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from claude_agent_sdk import SdkMcpTool, create_sdk_mcp_server
from claude_agent_sdk.types import McpSdkServerConfig

from gateway.engine.own_tools import OwnServer, OwnToolCaller, call_own

Caller = Callable[[], OwnToolCaller | None]
"""Gives what answers in the run in progress; None without one."""
_Handler = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


def mount(servers: Iterable[OwnServer], caller: Caller) -> dict[str, McpSdkServerConfig]:
    """Make the SDK's servers, by name."""
    return {
        server.name: create_sdk_mcp_server(server.name, tools=_tools(server, caller))
        for server in servers
    }


def _tools(server: OwnServer, caller: Caller) -> list[SdkMcpTool[Any]]:
    return [
        SdkMcpTool(
            name=tool.name,
            description=tool.description,
            input_schema=dict(tool.input_schema),
            handler=_handler(server.full_name(tool), caller),
        )
        for tool in server.tools
    ]


def _handler(name: str, caller: Caller) -> _Handler:
    return partial(_handle, name, caller)


async def _handle(name: str, caller: Caller, arguments: dict[str, Any]) -> dict[str, Any]:
    told = await call_own(caller(), name, arguments)
    return {"content": [{"type": "text", "text": told.text}], "is_error": told.is_error}
