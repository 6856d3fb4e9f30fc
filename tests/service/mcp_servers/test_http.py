"""An MCP server that is reached by streamable HTTP."""

import gzip
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.lowlevel
from mcp.server import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gateway.mcp_servers.messages import MAX_MESSAGE_BYTES
from tests.support.asgi import served
from tests.support.mcp_servers import LIMIT_S, Running, running, settings_with

TOKEN = "Bearer sesame-4711-open"


@asynccontextmanager
async def heron_server(is_away: Callable[[], bool] = lambda: False) -> AsyncIterator[str]:
    """Serve one tool to those who have the token, unless the server is away."""
    server = MCPServer("herons")

    @server.tool()
    def count(place: str) -> str:
        """Count herons."""
        return f"3 herons at {place}"

    app = server.streamable_http_app()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        is_known = scope["type"] != "http" or headers.get(b"authorization") == TOKEN.encode()
        away = Response("Away.", 503) if is_away() else None
        await (away or (app if is_known else Response("No.", 401)))(scope, receive, send)

    async with app.router.lifespan_context(app), served(guarded) as port:
        yield f"http://127.0.0.1:{port}/mcp"


async def test_its_tools_are_called_with_the_secret_that_the_file_names(tmp_path: Path) -> None:
    async with heron_server() as url:
        secrets = {"Authorization": {"env": "HERON_TOKEN", "before": "Bearer "}}
        settings = settings_with(tmp_path, {"herons": {"url": url, "secrets": secrets}})
        environ = {"HERON_TOKEN": TOKEN.removeprefix("Bearer ")}
        async with running(settings, environ) as here:
            assert here.offered() == {"herons": ["count"]}
            assert (
                await here.call("herons", "count", place="the weir")
            ).text == "3 herons at the weir"
            (described,) = here.servers.describe()
            assert (described["transport"], described["box"]) == ("http", None)


async def test_a_server_that_refuses_is_down_and_says_no_more(tmp_path: Path) -> None:
    async with heron_server() as url:
        settings = settings_with(tmp_path, {"herons": {"url": url}})
        async with running(settings) as here:
            (described,) = here.servers.describe()
            assert described["state"] != "running"
            assert url not in str(described)


Answer = Callable[[Request], Response]


@asynccontextmanager
async def answering(root: Path, answer: Answer) -> AsyncIterator[Running]:
    app = Starlette(routes=[Route("/mcp", answer, methods=["GET", "POST", "DELETE"])])
    async with served(app) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        async with running(settings_with(root, {"hostile": {"url": url}})) as here:
            yield here


async def test_an_endless_or_compressed_answer_is_not_read(tmp_path: Path) -> None:
    sent = 0

    def endless(_: Request) -> Response:
        def chunks() -> Iterator[bytes]:
            nonlocal sent
            while True:
                sent += 65536
                yield b" " * 65536

        return StreamingResponse(chunks(), media_type="application/json")

    def compressed(_: Request) -> Response:
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        return Response(gzip.compress(b" " * 1000), headers=headers)

    for answer in (endless, compressed):
        async with answering(tmp_path, answer) as here:
            (described,) = here.servers.describe()
            assert described["state"] != "running"
    assert sent < 4 * MAX_MESSAGE_BYTES


async def test_a_server_that_was_away_is_found_again(tmp_path: Path) -> None:
    is_away = False
    async with heron_server(lambda: is_away) as url:
        secrets = {"Authorization": {"env": "HERON_TOKEN"}}
        settings = settings_with(tmp_path, {"herons": {"url": url, "secrets": secrets}})
        async with running(settings, {"HERON_TOKEN": TOKEN}) as here:
            is_away = True
            assert (await here.call("herons", "count", place="the weir")).is_error
            is_away = False
            with anyio.fail_after(LIMIT_S):
                while (await here.call("herons", "count", place="the weir")).is_error:
                    await anyio.lowlevel.checkpoint()
