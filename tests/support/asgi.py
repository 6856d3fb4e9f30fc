"""An app on a real port of this machine, for what httpx's in-process transport cannot show: streams."""

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import anyio
import uvicorn
from starlette.types import ASGIApp


class _Server(uvicorn.Server):
    """Uvicorn that leaves signals alone, says when it listens and wakes at once to stop."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = anyio.Event()
        self.stopping = anyio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        self.listening.set()
        await self.stopping.wait()


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[int]:
    """Serve `app` on a free port of 127.0.0.1 and give the port; connections still open are cut."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        ws="none",
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # asyncio does so for sockets that it opens itself; without it small writes wait 40 ms
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            await server.listening.wait()
            try:
                yield listener.getsockname()[1]
            finally:
                server.force_exit = True
                server.stopping.set()
