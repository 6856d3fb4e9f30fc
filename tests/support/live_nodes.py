"""Two servers on one PostgreSQL behind a proxy, for tests that take them for one."""

import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import psutil
from anyio.from_thread import start_blocking_portal

from gateway.demo.server import run_server
from tests.support.live_server import LiveServer, started_server
from tests.support.postgres import new_database_blocking
from tests.support.round_robin import round_robin


@dataclass(slots=True, kw_only=True)
class LiveNodes(LiveServer):
    """Two servers that a test takes for one; what is not said here is that of the first."""

    other: LiveServer

    def agents(self) -> dict[int, psutil.Process]:
        """List the agent processes of both."""
        return {**LiveServer.agents(self), **self.other.agents()}


@contextmanager
def started_nodes(directory: Path, **options: Any) -> Iterator[LiveServer]:
    """Run two servers while the block does; each request of what is given goes to the next one.

    What is asked of the process rather than by HTTP is asked of the first. See `started_server`.
    """
    folders = {"workspace": directory / "workspace", "log_dir": directory / "logs"}
    with new_database_blocking("of-the-nodes") as url:
        shared = {
            "database_url": url,
            "node_url": "http://127.0.0.1:0",
            "node_ttl_s": 60,  # a busy machine gives a server no processor for seconds
            **folders,
            **options,
        }
        with (
            started_server(directory / "one", **shared) as one,
            started_server(directory / "other", **shared) as other,
            _proxy([one.url, other.url]) as address,
        ):
            known = {each.name: getattr(one, each.name) for each in fields(one)}
            yield LiveNodes(**{**known, "url": address}, other=other)


@contextmanager
def _proxy(servers: Sequence[str]) -> Iterator[str]:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(_serving(servers, listener)),
    ):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@asynccontextmanager
async def _serving(servers: Sequence[str], listener: socket.socket) -> AsyncIterator[None]:
    async with round_robin(servers) as app, run_server(app, listener):
        yield
