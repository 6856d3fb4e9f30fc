"""A uvicorn server inside the caller's event loop, whose connections a handler can cut.

Signals and logging stay with the process's owner, and leaving does not wait for open streams.
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
_GRACE_S = 1
"""For handlers that are still unwinding after their connections were cut."""


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
                for connection in list(server.server_state.connections):
                    connection.transport.abort()
    except BaseExceptionGroup as group:
        # An exception of the block leaves as it was raised, not in the task group's group.
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from group.exceptions[0].__cause__
        raise


async def cut_connection(request: Request) -> None:
    """Close the connection of `request` after what has been written, and return when it is closed."""
    transport: asyncio.Transport = getattr(request.state, _TRANSPORT)
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
        """Serve until `should_exit`; cancellation waits for it, so that no socket is left open."""
        with anyio.CancelScope(shield=True):
            await self.serve([listener])
