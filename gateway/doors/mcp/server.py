"""Candor's memory as an MCP server, by the protocol's own library in both of its generations.

Each request stands for itself and belongs to the user of its token.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, Protocol

from mcp.server import Server, ServerRequestContext
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
)

from gateway.version import VERSION

URI: Final = "candor://memory/"
_INSTRUCTIONS: Final = (
    "The person's memory, kept by Candor: facts, notes, episodes, cases and earlier conversations."
    " Search it before work that may have been done or decided before. `evidence` is always the"
    " person's own words, never those of a file or a tool."
)


_Context = ServerRequestContext[Any]


class Calls(Protocol):
    """What a request may ask for."""

    async def tools(self) -> list[Tool]:
        """Return what can be called."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Answer a call; whatever cannot be done is an answer, too."""

    async def read(self, uri: str) -> str:
        """Return a resource as JSON. Raise `MCPError` if there is none."""


def memory_server(calls: Calls) -> Server[Any]:
    """Return the server that answers by `calls`."""

    async def list_tools(_: _Context, _page: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=await calls.tools())

    async def call_tool(_: _Context, asked: CallToolRequestParams) -> CallToolResult:
        return await calls.call(asked.name, asked.arguments or {})

    async def list_resources(  # noqa: RUF029  as the library wants
        _: _Context, _page: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        return ListResourcesResult(resources=[])  # an item is found by searching

    async def list_templates(  # noqa: RUF029  as the library wants
        _: _Context, _page: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        item = ResourceTemplate(
            name="memory-item",
            uri_template=f"{URI}{{id}}",
            description="One item of memory, whole.",
            mime_type="application/json",
        )
        return ListResourceTemplatesResult(resource_templates=[item])

    async def read(_: _Context, asked: ReadResourceRequestParams) -> ReadResourceResult:
        text = await calls.read(asked.uri)
        contents = TextResourceContents(uri=asked.uri, mime_type="application/json", text=text)
        return ReadResourceResult(contents=[contents])

    return Server(
        "candor",
        version=VERSION,
        title="Candor's memory",
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,  # without it the library declares no resources
        on_list_resource_templates=list_templates,
        on_read_resource=read,
    )


def text_result(text: str, *, is_error: bool = False) -> CallToolResult:
    """Return a tool's answer; one that is a JSON object also as data."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    structured = value if isinstance(value, dict) and not is_error else None
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=structured,
        is_error=is_error,
    )
