"""MCP's own client and the agent program itself, unchanged, on the memory of the real server."""

import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent, TextResourceContents

from tests.support.live_server import LiveServer, started_server

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
READING = {
    *{"memory_search", "memory_get", "memory_context"},
    *{"memory_case_search", "memory_case_render"},
}
ALL = READING | {
    *{"memory_remember", "memory_forget", "memory_write_episode"},
    *{"memory_case_upsert", "memory_case_feedback"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with started_server(tmp_path_factory.mktemp("mcp")) as server:
        yield server


@asynccontextmanager
async def connected(server: LiveServer, way: str) -> AsyncIterator[Client]:
    """Connect by HTTP in either generation of the protocol, or by the command's pipes."""
    if way == "stdio":
        command = [str(ROOT / "app.py"), "mcp", "--url", server.url]
        told = StdioServerParameters(command=sys.executable, args=command)
        async with Client(told, cache=None) as client:
            yield client
    else:
        async with httpx2.AsyncClient(trust_env=False) as http:
            transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
            async with Client(transport, cache=None, mode=way) as client:
                yield client


def text_of(result: Any) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def data_of(client: Client, tool: str, **arguments: Any) -> Mapping[str, Any]:
    """Call a tool; return its data, which its text holds, too."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert json.loads(text_of(result)) == result.structured_content
    return result.structured_content  # type: ignore[no-any-return]


@pytest.mark.parametrize("way", ["auto", "legacy", "stdio"])
async def test_memory_is_kept_found_and_forgotten_from_elsewhere(
    server: LiveServer, way: str
) -> None:
    words = f"the {way} lab opens at 7:30"
    async with connected(server, way) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == ALL
        assert {
            tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint
        } == READING
        kept = await data_of(client, "memory_remember", text=f"T{words[1:]}", evidence=words)
        found = await data_of(client, "memory_search", query=f"When does the {way} lab open?")
        assert kept["id"] in [item["id"] for item in found["items"]]
        context = await data_of(client, "memory_context", queries=[f"{way} lab opening hours"])
        assert words[3:] in context["text"]
        read = await client.read_resource(f"candor://memory/{kept['id']}")
        (contents,) = read.contents
        assert isinstance(contents, TextResourceContents)
        assert words[3:] in contents.text
        async with server.client() as candor:
            assert (await candor.get(f"/memory/items/{kept['id']}"))["evidence"] == words
        await data_of(client, "memory_forget", ids=[kept["id"]], evidence="forget the lab")
        with pytest.raises(MCPError):
            await client.read_resource(f"candor://memory/{kept['id']}")


async def test_an_episode_and_a_case_are_written_and_found(server: LiveServer) -> None:
    async with connected(server, "auto") as client:
        written = await data_of(
            client,
            "memory_write_episode",
            episode_type="bugfix",
            title="Kiln controller drifted",
            sections={"decisions": "Calibrate the kiln each Monday."},
        )
        assert written["status"] == "stored"
        found = await data_of(client, "memory_search", query="kiln calibration")
        assert written["episode_id"] in [item["id"] for item in found["items"]]
        case = {
            "symptom_summary": "kiln reports 1400 degrees when cold",
            "diagnosis": "its sensor cable was loose",
            "resolution": "fastened the cable",
            "confidence": 0.9,
        }
        stored = await data_of(client, "memory_case_upsert", case=case)
        searched = await data_of(client, "memory_case_search", query="kiln reports 1400 degrees")
        assert stored["case_id"] in json.dumps(searched)
        shown = await client.call_tool("memory_case_render", {"case_ids": [stored["case_id"]]})
        assert "fastened the cable" in text_of(shown)


async def test_a_wrong_call_is_a_sentence_without_a_trace_of_ours(server: LiveServer) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("memory_remember", {"text": "x"}),
        ("memory_remember", {"text": "no words of anybody", "evidence": " "}),
        ("memory_forget", {"ids": [], "evidence": "forget it"}),
        ("memory_get", {"id": "epi_unknown"}),
        ("memory_context", {"queries": []}),
        ("memory_write_episode", {"title": 7}),
        ("memory_case_render", {"case_ids": ["cas_unknown"]}),
        ("no_such_tool", {}),
    ]
    async with connected(server, "auto") as client:
        for name, arguments in wrong:
            result = await client.call_tool(name, arguments)
            assert result.is_error, name
            for trace in ("http", "pydantic", "Traceback", "/"):
                assert trace not in text_of(result), (name, text_of(result))


def test_another_host_is_refused(server: LiveServer) -> None:
    headers = {"Host": "evil.example"}
    answer = httpx.post(f"{server.url}/mcp", json={}, headers=headers, trust_env=False)
    assert answer.status_code == 403
