"""The demo model on loopback, with every request that reaches it kept."""

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.demo.server import create_demo_app, run_server


@dataclass
class RecordingModel:
    """An ASGI application in front of the demo model."""

    app: ASGIApp
    url: str
    bodies: list[bytes] = field(default_factory=list)

    @property
    def heard(self) -> bytes:
        """Everything that was sent to the model."""
        return b"".join(self.bodies)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The requests in order."""
        return [json.loads(body) for body in self.bodies if body]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and keep its body."""
        index = len(self.bodies)
        self.bodies.append(b"")

        async def hear() -> Message:
            message = await receive()
            self.bodies[index] += message.get("body", b"")
            return message

        await self.app(scope, hear, send)


@asynccontextmanager
async def recording_model() -> AsyncIterator[RecordingModel]:
    """Serve the recorded demo model while the block runs."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    model = RecordingModel(create_demo_app(cadence_ms=0), url)
    async with run_server(model, listener):
        yield model
