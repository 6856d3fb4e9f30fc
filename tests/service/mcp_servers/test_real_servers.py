"""Real MCP servers from the registries, each in its box: time, git, files, fetch."""

import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from tests.support.asgi import served
from tests.support.mcp_servers import running, settings_with
from tests.support.npm_clients import MODULES, needs_npm

BIN = Path(sys.executable).parent
"""Where the servers are installed beside the tests."""


async def test_the_time_server_is_called(tmp_path: Path) -> None:
    table = {
        "command": [str(BIN / "mcp-server-time"), "--local-timezone", "Europe/Berlin"],
        "reading": ["get_current_time", "convert_time"],
    }
    async with running(settings_with(tmp_path, {"time": table})) as here:
        await here.until_offered("time")
        assert here.offered() == {"time": ["get_current_time", "convert_time"]}
        given = {
            "source_timezone": "Asia/Tokyo",
            "time": "12:00",
            "target_timezone": "Asia/Kolkata",
        }
        told = await here.call("time", "convert_time", **given)
        assert not told.is_error
        assert "-3.5h" in told.text
        wrong = await here.call("time", "get_current_time", timezone="Nowhere/At_All")
        assert wrong.is_error
        rule = here.servers.rule_of("mcp__time__convert_time")
        assert rule is not None
        assert not rule.changes


async def test_the_git_server_works_in_the_workspace_and_with_the_tools_that_are_named(
    tmp_path: Path,
) -> None:
    table = {
        "command": [str(BIN / "mcp-server-git"), "--repository", str(tmp_path / "ws")],
        "tools": ["git_status", "git_log", "git_commit"],
        "reading": ["git_status", "git_log"],
        "workspace": "write",
        "environment": {
            f"GIT_{who}_{what}": "heron@example.com"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    settings = settings_with(tmp_path, {"git": table})
    repository = settings.workspace
    (repository / "a.txt").write_text("alpha", encoding="utf-8")
    for words in (("init", "-q"), ("add", "a.txt")):
        await anyio.run_process(["git", "-C", str(repository), *words])
    async with running(settings) as here:
        await here.until_offered("git")
        assert {*here.offered()["git"]} == {"git_status", "git_log", "git_commit"}
        at = {"repo_path": str(repository)}
        assert "a.txt" in (await here.call("git", "git_status", **at)).text
        done = await here.call("git", "git_commit", **at, message="Add the heron")
        assert not done.is_error, done.text
        assert "Add the heron" in (await here.call("git", "git_log", **at)).text
        assert (await here.call("git", "git_reset", **at)).is_error, "the file does not name it"


@needs_npm
async def test_the_filesystem_server_works_in_the_workspace_alone(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("S3CR3T", encoding="utf-8")
    program = f"{MODULES}/@modelcontextprotocol/server-filesystem/dist/index.js"
    table = {
        "command": [shutil.which("node"), program, str(tmp_path / "ws"), str(tmp_path)],
        "reads": [MODULES],
        "tools": ["read_text_file", "write_file"],
        "reading": ["read_text_file"],
        "workspace": "write",
    }
    settings = settings_with(tmp_path, {"files": table})
    async with running(settings) as here:
        await here.until_offered("files")
        assert here.offered() == {"files": ["read_text_file", "write_file"]}
        note = str(settings.workspace / "note.md")
        told = await here.call("files", "write_file", path=note, content="# 苍鹭\n")
        assert not told.is_error, told.text
        assert (await here.call("files", "read_text_file", path=note)).text == "# 苍鹭\n"
        told = await here.call("files", "read_text_file", path=str(outside))
        walled = here.servers.describe()[0]["box"] == "landlock"
        assert ("S3CR3T" in told.text) != walled, "the server itself would give it"


@asynccontextmanager
async def page_on_loopback() -> AsyncIterator[int]:
    def page(_: Request) -> Response:
        return HTMLResponse(
            "<html><body><article><h1>Herons</h1><p>They wade.</p></article></body></html>"
        )

    def robots(_: Request) -> Response:
        return Response("User-agent: *\nAllow: /\n", media_type="text/plain")

    async with served(Starlette(routes=[Route("/", page), Route("/robots.txt", robots)])) as port:
        yield port


async def test_the_fetch_server_reaches_the_ports_that_the_file_gives_it_and_no_other(
    tmp_path: Path,
) -> None:
    async with page_on_loopback() as port, page_on_loopback() as other:
        table = {
            "command": [str(BIN / "mcp-server-fetch"), "--allow-private-ips"],
            "network": [port],
        }
        async with running(settings_with(tmp_path, {"fetch": table})) as here:
            await here.until_offered("fetch")
            told = await here.call("fetch", "fetch", raw=True, url=f"http://127.0.0.1:{port}/")
            assert not told.is_error, told.text
            assert "They wade." in told.text
            walled = here.servers.describe()[0]["box"] == "landlock"
            refused = await here.call("fetch", "fetch", raw=True, url=f"http://127.0.0.1:{other}/")
            assert refused.is_error == walled
