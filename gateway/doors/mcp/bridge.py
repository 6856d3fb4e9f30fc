"""`candor mcp`: the same memory over standard input and output, for hosts that start a command.

A bridge to a running server, which has the data directory. Standard output belongs to the protocol.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server
from mcp.types import INTERNAL_ERROR, CallToolResult, TextResourceContents, Tool

from gateway.doors.bridge_options import read_options
from gateway.doors.mcp.server import memory_server, text_result

_TIMEOUT_S = 60.0
_GONE = "Candor does not answer. Start it, or say with --url where it runs."


class _Forwarded:
    """Passes each call on to the server."""

    def __init__(self, url: str, http: httpx2.AsyncClient) -> None:
        self._url = url
        self._http = http

    async def tools(self) -> list[Tool]:
        async with self._client() as client:
            return (await client.list_tools()).tools

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        try:
            async with self._client() as client:
                return await client.call_tool(name, dict(arguments))
        except (MCPError, httpx2.HTTPError, OSError, ExceptionGroup):
            return text_result(_GONE, is_error=True)

    async def read(self, uri: str) -> str:
        async with self._client() as client:
            (contents,) = (await client.read_resource(uri)).contents
        if not isinstance(contents, TextResourceContents):
            raise MCPError(code=INTERNAL_ERROR, message=_GONE)
        return contents.text

    def _client(self) -> Client:
        return Client(streamable_http_client(self._url, http_client=self._http), cache=None)


def run_bridge_command(arguments: Sequence[str], address: str, program: str) -> int:
    """Serve until standard input ends and return the exit code; `address` is where the server of
    these settings listens. Raise `StartError` if the token cannot be read.
    """
    options = read_options(arguments, address=address, program=f"{program} mcp", about=__doc__)
    if isinstance(options, int):
        return options
    anyio.run(_serve, *options)
    return 0


async def _serve(address: str, token: str | None) -> None:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=_TIMEOUT_S, trust_env=False) as http,
        stdio_server() as (incoming, outgoing),
    ):
        server = memory_server(_Forwarded(f"{address.rstrip('/')}/mcp", http))
        await server.run(incoming, outgoing, server.create_initialization_options())
