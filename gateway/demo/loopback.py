"""Runs an ASGI application on a listening socket inside the current event loop, and cuts connections on request.

Uvicorn does the HTTP. Three things differ from its ordinary use: it installs no signal handlers and leaves logging alone (the process belongs to
somebody else), a handler can reach its own connection to cut it, and leaving does not wait for streams that are still open.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import uvicorn
from starlette.requests import Request
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

_TRANSPORT = "demo_transport"
# Connections are cut before; this bounds what is still unwinding.
_GRACE_S = 1


@asynccontextmanager
async def run_server(app: ASGIApp, listener: socket.socket) -> AsyncIterator[None]:
    """Serve `app` on `listener` while the block runs; closes the socket and every connection at its end."""
    config = uvicorn.Config(
        app,
        http=_ReachableProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = _QuietServer(config)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve_to_the_end, listener)
            try:
                yield
            finally:
                server.should_exit = True
                server.cut_connections()
    except BaseExceptionGroup as group:
        # The task group is our affair: what the block raised leaves it as it was.
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from group.exceptions[0].__cause__
        raise


async def cut_connection(request: Request) -> None:
    """Close the connection of `request` after what has been written, and return when it is closed.

    Raises:
        ConnectionResetError: the application runs under a server whose connections cannot be reached.
    """
    transport: asyncio.Transport | None = getattr(request.state, _TRANSPORT, None)
    if transport is None:
        raise ConnectionResetError("the demo model was told to drop this connection")
    transport.close()
    while (await request.receive())["type"] != "http.disconnect":
        pass


class _ReachableProtocol(H11Protocol):
    """Puts the connection's transport into the state of its requests."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        super().connection_made(transport)
        self.app_state: dict[str, Any] = {**self.app_state, _TRANSPORT: transport}


class _QuietServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process's owner."""
        yield

    async def serve_to_the_end(self, listener: socket.socket) -> None:
        """Serve until `should_exit`; cancellation from outside waits for it, so that no socket is left open."""
        with anyio.CancelScope(shield=True):
            await self.serve([listener])

    def cut_connections(self) -> None:
        for connection in list(self.server_state.connections):
            if isinstance(connection, _ReachableProtocol):
                connection.transport.abort()
