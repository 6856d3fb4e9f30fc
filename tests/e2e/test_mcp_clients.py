"""MCP's own client and the agent program itself, unchanged, on the memory of the real server."""

import json
import os
import subprocess
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

from gateway.engine.sdk import find_agent_program
from gateway.http.tokens import make_token
from tests.support.demo_service import demo_model_as_a_service
from tests.support.live_server import DEADLINE_S, LiveServer, script, started_server

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


def bridge(server: LiveServer) -> list[str]:
    return [str(ROOT / "app.py"), "mcp", "--url", server.url]


@asynccontextmanager
async def connected(
    server: LiveServer, way: str, *, token_file: Path | None = None
) -> AsyncIterator[Client]:
    """Connect by HTTP in either generation of the protocol, or by the command's pipes."""
    if way == "stdio":
        args = bridge(server) + (["--token-file", str(token_file)] if token_file else [])
        told = StdioServerParameters(command=sys.executable, args=args)
        async with Client(told, cache=None) as client:
            yield client
    else:
        headers = {"Authorization": f"Bearer {token_file.read_text()}"} if token_file else {}
        async with httpx2.AsyncClient(headers=headers, timeout=DEADLINE_S, trust_env=False) as http:
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
        assert client.server_capabilities.resources is not None
        assert (await client.list_resources()).resources == []
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == ALL
        assert all(tool.input_schema["properties"] and tool.description for tool in tools)
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
        with pytest.raises(MCPError, match="no such item"):
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


@pytest.mark.parametrize("way", ["auto", "legacy", "stdio"])
async def test_a_token_finds_what_its_user_has_and_nothing_of_others(
    guarded: tuple[LiveServer, Mapping[str, Path]], way: str
) -> None:
    server, tokens = guarded
    words = f"the {way} kiln opens at 7:30"
    async with (
        connected(server, way, token_file=tokens["ada"]) as ada,
        connected(server, way, token_file=tokens["bob"]) as bob,
        server.client() as candor,
    ):
        kept = await data_of(ada, "memory_remember", text=f"T{words[1:]}", evidence=words)
        found = await data_of(ada, "memory_search", query=f"{way} kiln")
        candor.http.headers["Authorization"] = f"Bearer {tokens['ada'].read_text()}"
        over_http = await candor.get(f"/memory/search?q={way}+kiln")
        ids = {item["id"] for item in found["items"]}
        assert kept["id"] in ids
        assert ids == {item["id"] for item in over_http["items"]}
        assert (await data_of(bob, "memory_search", query=f"{way} kiln"))["items"] == []
        assert (await bob.call_tool("memory_get", {"id": kept["id"]})).is_error
        with pytest.raises(MCPError, match="no such item"):
            await bob.read_resource(f"candor://memory/{kept['id']}")


@pytest.mark.parametrize("way", ["auto", "legacy"])
async def test_without_a_token_there_is_no_memory(
    guarded: tuple[LiveServer, Mapping[str, Path]], way: str
) -> None:
    server, _ = guarded
    with pytest.RaisesGroup(MCPError, allow_unwrapped=True, flatten_subgroups=True):
        async with connected(server, way) as client:
            await client.list_tools()


async def test_the_bridge_says_what_is_wrong_with_the_server(
    guarded: tuple[LiveServer, Mapping[str, Path]],
) -> None:
    server, _ = guarded
    foreign = server.url.replace("127.0.0.1", "0.0.0.0")
    for url, told in (
        (server.url, "--token-file"),
        ("http://127.0.0.1:9", "--url"),
        (foreign, "not a name of this server"),
    ):
        args = [*bridge(server), "--url", url]
        async with Client(StdioServerParameters(command=sys.executable, args=args)) as client:
            with pytest.raises(MCPError, match=told):
                await client.list_tools()
            with pytest.raises(MCPError, match=told):
                await client.read_resource("candor://memory/fac_x")
            result = await client.call_tool("memory_search", {"query": "kiln"})
            assert result.is_error
            assert told in text_of(result)


@pytest.fixture(scope="module")
def guarded(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[LiveServer, Mapping[str, Path]]]:
    """A server of two users, with a file of each one's token."""
    directory = tmp_path_factory.mktemp("guarded")
    file, made = directory / "tokens", {name: make_token(name) for name in ("ada", "bob")}
    file.touch(mode=0o600)
    file.write_text("\n".join(line for _, line in made.values()))
    tokens = {name: directory / name for name in made}
    for name, (token, _) in made.items():
        tokens[name].write_text(token)
    with started_server(directory / "server", tokens_file=file) as server:
        yield server, tokens


@pytest.mark.parametrize("way", ["http", "stdio"])
def test_the_agent_program_itself_keeps_and_finds(
    server: LiveServer, tmp_path: Path, way: str
) -> None:
    """As a person sets it up: `claude mcp add`, then `claude`."""
    program = str(find_agent_program())
    where = ["--transport", "http", "candor", f"{server.url}/mcp"]
    if way == "stdio":
        where = ["candor", "--", sys.executable, *bridge(server)]
    words = f"the {way} forge is closed on Sundays"
    keep = {"text": f"T{words[1:]}.", "evidence": words}
    steps = script(
        {"tool": "mcp__candor__memory_remember", "input": keep},
        {"tool": "mcp__candor__memory_search", "input": {"query": f"{way} forge"}},
        {"text": "Kept."},
    )
    with demo_model_as_a_service() as url:
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ANTHROPIC_BASE_URL": url}
        environ |= {"ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

        def claude(*arguments: str) -> str:
            return subprocess.run(
                [program, *arguments],
                cwd=tmp_path,
                env=environ,
                capture_output=True,
                text=True,
                check=True,
                timeout=DEADLINE_S,
            ).stdout

        claude("mcp", "add", *where)
        asked = ["-p", steps, "--model", "candor-demo", "--allowedTools", "mcp__candor"]
        told = claude(*asked, "--output-format", "stream-json", "--verbose")
    events = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    assert events[-1]["result"] == "Kept."
    parts = [part for event in events if event["type"] == "user" for part in content_of(event)]
    kept, found = (part["content"] for part in parts if part["type"] == "tool_result")
    assert json.loads(kept)["state"] == "kept"
    assert words[1:] in str(found)


def content_of(event: Any) -> list[Any]:
    content = event["message"]["content"]
    return content if isinstance(content, list) else []


def test_another_host_is_refused(server: LiveServer) -> None:
    headers = {"Host": "evil.example"}
    answer = httpx.post(
        f"{server.url}/mcp", json={}, headers=headers, timeout=DEADLINE_S, trust_env=False
    )
    assert answer.status_code == 403
