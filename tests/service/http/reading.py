"""Reads server-sent events as a browser does, one at a time."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import httpx

from tests.service.http.stage import LIMIT_S, Json


@dataclass(frozen=True, slots=True)
class Event:
    """One event; a comment has neither type nor data."""

    id: str | None
    type: str | None
    data: Any
    comment: str | None = None


class EventReader:
    """The events of a response."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def next(self) -> Event | None:
        """Return the next event or comment, None at the end of the stream."""
        with anyio.fail_after(LIMIT_S):
            lines: list[str] = []
            async for line in self._lines:
                if not line and lines:
                    return _event(lines)
                lines.append(line)
            assert not [line for line in lines if line], "the stream was cut within an event"
            return None

    async def until(self, kind: str) -> list[Event]:
        """Return the events up to the first of a type."""
        found: list[Event] = []
        while not found or found[-1].type != kind:
            event = await self.next()
            assert event is not None, f"the stream ended before {kind}"
            found.append(event)
        return found

    async def rest(self) -> list[Event]:
        """Return the events up to the end of the stream."""
        found = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found


def _event(lines: list[str]) -> Event:
    if len(lines) == 1 and lines[0].startswith(":"):
        return Event(None, None, None, lines[0][1:].strip())
    fields = dict(line.split(": ", 1) for line in lines)
    assert set(fields) <= {"id", "event", "data"}
    return Event(fields.get("id"), fields["event"], json.loads(fields["data"]))


@asynccontextmanager
async def reading(
    client: httpx.AsyncClient, method: str, path: str, **more: Any
) -> AsyncIterator[EventReader]:
    """Open a stream; leaving the block drops the connection."""
    async with client.stream(method, path, **more) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        yield EventReader(response)


@asynccontextmanager
async def streaming(
    client: httpx.AsyncClient, message: str, conversation_id: str | None = None
) -> AsyncIterator[EventReader]:
    """Send a message and open the stream of its turn."""
    body: Json = {"message": message, "conversation_id": conversation_id}
    async with reading(client, "POST", "/chat/stream", json=body) as stream:
        yield stream


@asynccontextmanager
async def following(
    client: httpx.AsyncClient, conversation_id: str, after: str | None = None
) -> AsyncIterator[EventReader]:
    """Follow a conversation, after an event if one is named."""
    headers = {} if after is None else {"Last-Event-ID": after}
    path = f"/conversations/{conversation_id}/events"
    async with reading(client, "GET", path, headers=headers) as stream:
        yield stream
