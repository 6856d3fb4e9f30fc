"""A receiver of webhooks on loopback that checks each message with the library of Standard Webhooks."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from standardwebhooks import Webhook as Verifier
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tests.support.asgi import served

WAIT_S = 20
Answer = Callable[[str], Awaitable[Response]]


def answering(*statuses: int) -> Answer:
    """Make what answers with these statuses, and then with the last of them for ever."""
    left = list(statuses)

    async def answer(_: str) -> Response:  # noqa: RUF029
        status = left.pop(0) if len(left) > 1 else left[0]
        return (
            RedirectResponse("/elsewhere", status)
            if status // 100 == 3
            else Response(status_code=status)
        )

    return answer


@dataclass(frozen=True, slots=True)
class Message:
    """What came, unread."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    def read(self, secret: str) -> dict[str, Any]:
        """Return what is in it; fail if its signature is not of this secret."""
        read: dict[str, Any] = Verifier(secret).verify(self.body, self.headers)
        assert read == json.loads(self.body)
        return read


@dataclass(slots=True)
class Receiver:
    """A server for webhooks; each path is one receiver."""

    answer: Answer
    port: int = 0
    came: list[Message] = field(default_factory=list)
    _more: anyio.Event = field(default_factory=anyio.Event)

    def url(self, path: str = "/hook") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def handle(self, request: Request) -> Response:
        message = Message(request.url.path, dict(request.headers), await request.body())
        self.came.append(message)
        self._more.set()
        self._more = anyio.Event()
        return await self.answer(message.path)

    async def wait(self, count: int, path: str | None = None) -> list[Message]:
        """Wait until so many messages came, to one path or to all."""
        with anyio.fail_after(WAIT_S):
            while len(found := self.at(path)) < count:
                await self._more.wait()
        return found

    def at(self, path: str | None) -> list[Message]:
        return [message for message in self.came if path in {None, message.path}]


@asynccontextmanager
async def receiving(answer: Answer | None = None) -> AsyncIterator[Receiver]:
    """Serve a receiver on loopback."""
    receiver = Receiver(answer or answering(204))
    routes = [Route("/{path:path}", receiver.handle, methods=["POST"])]
    async with served(Starlette(routes=routes)) as receiver.port:
        yield receiver
