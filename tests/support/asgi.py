"""An app behind the server's own connections, for what httpx's in-process transport cannot show: streams."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import uvicorn
from starlette.types import ASGIApp

from gateway.http.connections import SEND_BUFFER_BYTES, ConnectionLimits, Connections


class _Server(uvicorn.Server):
    """Uvicorn that says when it listens and wakes at once to stop."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = anyio.Event()
        self.stopping = anyio.Event()

    async def main_loop(self) -> None:
        self.listening.set()
        await self.stopping.wait()


@asynccontextmanager
async def served(
    app: ASGIApp,
    limits: ConnectionLimits | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    connections: Connections | None = None,
) -> AsyncIterator[int]:
    """Serve `app` as the program does, and give the port; open connections are cut at the end."""
    connections = connections or Connections(limits)
    server = _Server(connections.server_config(app, drain_s=1))
    server.config.load()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server._serve, [listener])  # noqa: SLF001  `serve` would take the signals
            await server.listening.wait()
            try:
                yield listener.getsockname()[1]
            finally:
                server.force_exit = True
                server.stopping.set()
