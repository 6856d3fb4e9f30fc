"""Anthropic's own client on a live server, for Managed Agents: sessions, their events and streams."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import anyio
import httpx2

from tests.support.live_server import DEADLINE_S, LiveServer


class Client(anthropic.AsyncAnthropic):
    """The client, with the requests that it sends counted."""

    def __init__(self, server: LiveServer, *, road: Any = None, **options: Any) -> None:
        self.requests: list[str] = []

        async def sent(request: httpx2.Request) -> None:  # noqa: RUF029  as httpx wants
            self.requests.append(f"{request.method} {request.url.path}")

        http = anthropic.DefaultAsyncHttpxClient(
            event_hooks={"request": [sent]}, trust_env=False, transport=road
        )
        super().__init__(
            base_url=f"{server.url}/anthropic", api_key="any", http_client=http, **options
        )

    async def new_session(self, **agent: Any) -> Any:
        """Create an agent, an environment and a session of them."""
        fields: Any = {"name": "Helper", "model": "candor", **agent}
        made = await self.beta.agents.create(**fields)
        place = await self.beta.environments.create(name="here", config={"type": "cloud"})
        return await self.beta.sessions.create(agent=made.id, environment_id=place.id)

    async def send(self, session: str, *events: Any) -> Any:
        """Send events and return them as they stand in the session."""
        return (await self.beta.sessions.events.send(session, events=events)).data

    async def history(self, session: str, **options: Any) -> list[Any]:
        """List all events, page by page."""
        return [event async for event in self.beta.sessions.events.list(session, **options)]

    @asynccontextmanager
    async def streaming(self, session: str, *previews: Any, **more: Any) -> AsyncIterator["Reader"]:
        """Open a stream."""
        options: Any = {"event_deltas": list(previews)} if previews else {}
        async with await self.beta.sessions.events.stream(session, **options, **more) as stream:
            yield Reader(stream)


class Reader:
    """Reads a stream up to events."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.seen: list[Any] = []
        self._events = aiter(stream)

    async def until(self, kind: str) -> list[Any]:
        """Read on to the next event of a kind; return what came."""
        begin = len(self.seen)
        with anyio.fail_after(DEADLINE_S):
            async for event in self._events:
                self.seen.append(event)
                if event.type == kind:
                    return self.seen[begin:]
        raise AssertionError(f"the stream ended without {kind}: {types(self.seen)}")

    async def until_idle(self, reason: str = "end_turn") -> list[Any]:
        """Read on to the next idle session, for this reason."""
        events = await self.until("session.status_idle")
        assert events[-1].stop_reason.type == reason
        return events


def types(events: Sequence[Any]) -> list[str]:
    return [event.type for event in events]


def ids(events: Sequence[Any]) -> list[str]:
    return [event.id for event in events]


def says(text: str) -> Any:
    return {"type": "user.message", "content": [{"type": "text", "text": text}]}


def texts(events: Sequence[Any]) -> list[str]:
    return [
        "".join(part.text for part in event.content)
        for event in events
        if event.type == "agent.message"
    ]
