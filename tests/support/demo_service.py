"""The demo model served by itself, as any model's service."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from anyio.from_thread import start_blocking_portal

from gateway.demo.server import create_demo_app, run_server


@contextmanager
def demo_model_as_a_service() -> Iterator[str]:
    """Serve the demo model while the block runs; yield its address."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(run_server(create_demo_app(cadence_ms=0), listener)),
    ):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
