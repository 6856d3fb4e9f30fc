"""`candor mcp`: the same memory over standard input and output, for hosts that start a command.

A bridge to a running server, which has the data directory. Standard output belongs to the protocol.
`candor mcp list` and `candor mcp accept` are about the tools of MCP servers.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
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
_UNKNOWN = "Candor does not know the token; name the file that holds yours with --token-file."


class _Forwarded:
    """Passes each call on to the server."""

    def __init__(self, url: str, http: httpx2.AsyncClient) -> None:
        self._url = url
        self._http = http
        self._status = 0
        """Of the last answer; 0: there was none."""
        self._sentence = ""
        """The server's own about a request that it refused; empty if there is none."""
        http.event_hooks["response"].append(self._note)

    async def _note(self, response: httpx2.Response) -> None:
        self._status = response.status_code
        if response.is_error:
            self._sentence = _sentence_in(await response.aread())

    async def tools(self) -> list[Tool]:
        async with self._client() as client:
            return (await client.list_tools()).tools

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        try:
            async with self._client() as client:
                return await client.call_tool(name, dict(arguments))
        except MCPError as exc:
            return text_result(exc.error.message, is_error=True)

    async def read(self, uri: str) -> str:
        async with self._client() as client:
            (contents,) = (await client.read_resource(uri)).contents
        if not isinstance(contents, TextResourceContents):
            raise MCPError(code=INTERNAL_ERROR, message=_GONE)
        return contents.text

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        """Connect; what goes wrong in the block is raised as an `MCPError` with a sentence."""
        self._status, self._sentence = 0, ""
        try:
            transport = streamable_http_client(self._url, http_client=self._http)
            async with Client(transport, cache=None) as client:
                yield client
        except (MCPError, httpx2.HTTPError, OSError, ExceptionGroup) as exc:
            raise self._told(exc) from None

    def _told(self, exc: Exception) -> MCPError:
        if self._status == HTTPStatus.UNAUTHORIZED:
            return MCPError(code=INTERNAL_ERROR, message=_UNKNOWN)
        if self._sentence:
            return MCPError(code=INTERNAL_ERROR, message=self._sentence)
        answered = _answer_in(exc) if self._status else None
        return answered or MCPError(code=INTERNAL_ERROR, message=_GONE)


def _sentence_in(body: bytes) -> str:
    """Return the sentence of an error of the server's own shape; empty if it has another one."""
    try:
        error = json.loads(body)["error"]
        return str(error["message"]) if "request_id" in error else ""
    except (ValueError, LookupError, TypeError):
        return ""


def _answer_in(exc: BaseException) -> MCPError | None:
    """Return the error with which the server answered."""
    if isinstance(exc, BaseExceptionGroup):
        return next(filter(None, map(_answer_in, exc.exceptions)), None)
    return exc if isinstance(exc, MCPError) else None


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
