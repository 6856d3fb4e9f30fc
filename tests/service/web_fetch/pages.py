"""A web of the tests: names, the addresses that they lead to, and one real server on loopback."""

import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from gateway.web_fetch.exchange import Exchange, Place
from gateway.web_fetch.fetcher import Fetcher
from tests.support.asgi import served

LOOPBACK = "127.0.0.1"
Answer = Callable[[Request], Response]


def page(text: str) -> Response:
    return HTMLResponse(f"<html><head><title>Herons</title></head><body>{text}</body></html>")


@dataclass(slots=True)
class Web:
    """Which name leads where; a name that is not listed does not exist."""

    port: int
    names: dict[str, list[Sequence[str]]] = field(default_factory=dict)
    """The addresses of a name, for one look-up after the other; the last ones stay."""
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def resolve(self, host: str, port: int) -> Sequence[Place]:
        self.asked.append((host, port))
        if host not in self.names:
            raise OSError(-2, "Name or service not known")
        answers = self.names[host]
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(address, self.port) for address in addresses]

    def fetcher(self, *hosts: str, trusted: ssl.SSLContext | None = None) -> Fetcher:
        """Return a fetcher for which loopback, and nothing else, counts as public."""
        context = trusted or ssl.create_default_context()
        exchange = Exchange(
            resolve=self.resolve, is_allowed=lambda one: one == LOOPBACK, trusted=lambda: context
        )
        return Fetcher(hosts or ["*"], exchange)


@dataclass(slots=True)
class Seen:
    """What reached the server."""

    requests: list[Request] = field(default_factory=list)


@asynccontextmanager
async def web_with(answer: Answer, *names: str) -> AsyncIterator[tuple[Web, Seen]]:
    """Serve every path with `answer`; the names lead there."""
    seen = Seen()

    def handle(request: Request) -> Response:
        seen.requests.append(request)
        return answer(request)

    async with served(Starlette(routes=[Route("/{path:path}", handle)])) as port:
        yield Web(port, {name: [[LOOPBACK]] for name in names or ("herons.org",)}), seen
