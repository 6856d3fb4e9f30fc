"""A server that starts an agent process for each request, with the SDK's `query`, as most wrappers do.

It speaks OpenAI's chat completions, streaming, and resumes the session of the conversation named in `user`.
"""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import uvicorn
from claude_agent_sdk import ResultMessage, StreamEvent, query
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from bench import bare
from bench.stand_in import ROOT, clean_environ

_sessions: dict[str, str] = {}


@asynccontextmanager
async def per_request_server(directory: Path, url: str) -> AsyncIterator[str]:
    """Run the server while the block runs; yield the address of its completions."""
    workspace, config_dir = directory / "workspace", directory / "per_request"
    process = await anyio.open_process(
        [sys.executable, "-m", "bench.per_request", str(workspace), url, str(config_dir)],
        cwd=ROOT,
        stderr=None,
        env=clean_environ(),
    )
    try:
        assert process.stdout is not None
        port = int((await process.stdout.receive()).decode())
        yield f"http://127.0.0.1:{port}/v1/chat/completions"
    finally:
        process.terminate()
        await process.wait()


async def _completions(request: Request) -> StreamingResponse:
    body = await request.json()
    workspace, url, config_dir = sys.argv[1:]
    resume = _sessions.get(body["user"])
    options = bare.options(Path(workspace), url, Path(config_dir), resume=resume)

    async def pieces() -> AsyncIterator[str]:
        async for message in query(prompt=body["messages"][-1]["content"], options=options):
            if isinstance(message, ResultMessage):
                _sessions[body["user"]] = message.session_id
            elif isinstance(message, StreamEvent):
                text = (message.event.get("delta") or {}).get("text")
                if text:
                    yield f"data: {json.dumps({'choices': [{'delta': {'content': text}}]})}\n\n"
        yield "data: [DONE]\n\n"

    return StreamingResponse(pieces(), media_type="text/event-stream")


async def _serve() -> None:
    app = Starlette(routes=[Route("/v1/chat/completions", _completions, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve)
        while not server.started:  # noqa: ASYNC110  uvicorn tells it by no event
            await anyio.sleep(0.01)
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)


if __name__ == "__main__":
    anyio.run(_serve)
