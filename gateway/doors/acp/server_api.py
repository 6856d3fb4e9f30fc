"""A running Candor over its own HTTP routes, as the bridge to an editor needs it."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final

import httpx

from gateway.conversations.model import TurnEvent
from gateway.ids import ConversationId, TurnId

_TIMEOUT: Final = httpx.Timeout(30.0, read=60.0)
"""A stream is never silent for longer than 15 seconds."""
PAGE: Final = 100
UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError)
"""What reading an answer of another form raises."""


class ServerRefused(Exception):
    """The server answered with an error: its sentence, for a person."""

    def __init__(self, message: str, *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.is_missing = is_missing


class ServerApi:
    """The routes that the bridge uses. Every method raises `ServerRefused`."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def call(self, method: str, path: str, **sent: Any) -> Any:
        """Return the answer to a request; None if it has no content."""
        try:
            answer = await self._http.request(method, path, **sent)
        except httpx.HTTPError:
            raise ServerRefused(_GONE) from None
        if answer.is_error:
            raise _refusal(answer)
        return answer.json() if answer.content else None

    @asynccontextmanager
    async def ask(
        self, conversation_id: str, message: str
    ) -> AsyncIterator[AsyncIterator[TurnEvent]]:
        """Send a message; give the events of its turn."""
        body = {"message": message, "conversation_id": conversation_id}
        async with self._streamed("POST", "/chat/stream", json=body) as events:
            yield events

    @asynccontextmanager
    async def follow(
        self, conversation_id: str, after: str | None
    ) -> AsyncIterator[AsyncIterator[TurnEvent]]:
        """Open a conversation's events behind the one with the id `after`, or from now on."""
        query = {} if after is None else {"after": after}
        path = f"/conversations/{conversation_id}/events"
        async with self._streamed("GET", path, params=query) as events:
            yield events

    @asynccontextmanager
    async def _streamed(
        self, method: str, path: str, **sent: Any
    ) -> AsyncIterator[AsyncIterator[TurnEvent]]:
        try:
            async with self._http.stream(method, path, **sent) as answer:
                if answer.is_error:
                    await answer.aread()
                    raise _refusal(answer)
                yield _events(answer)
        except httpx.HTTPError:
            raise ServerRefused(_GONE) from None

    async def unfinished_turns(self, conversation_id: str) -> list[str]:
        """Return the turns of a conversation that run or wait, in their order."""
        path = f"/conversations/{conversation_id}/messages"
        page = await self.call("GET", path, params={"limit": PAGE})
        return unfinished_in(page["messages"])


def unfinished_in(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the turns that run or wait."""
    return [
        message["turn_id"]
        for message in messages
        if message["role"] == "assistant" and message["result"] is None
    ]


def connect(address: str, token: str | None) -> httpx.AsyncClient:
    """Return the client for a server; close it."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.AsyncClient(base_url=address, headers=headers, timeout=_TIMEOUT, trust_env=False)


NOT_OURS: Final = "The server gave an answer that is not Candor's."
_GONE: Final = "Candor does not answer. Start it, or say with --url where it runs."


def _refusal(answer: httpx.Response) -> ServerRefused:
    try:
        message = str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        message = NOT_OURS
    return ServerRefused(message, is_missing=answer.status_code == HTTPStatus.NOT_FOUND)


async def _events(answer: httpx.Response) -> AsyncIterator[TurnEvent]:
    """Yield a stream's events. Raise `ServerRefused` for the event `error`."""
    kind, lines = "", answer.aiter_lines()
    while True:
        try:
            line = await anext(lines, None)
        except httpx.HTTPError:
            raise ServerRefused(_GONE) from None
        if line is None:
            return
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data" and kind == "error":
            raise ServerRefused(json.loads(value)["error"]["message"])
        elif name == "data":
            yield _event(kind, value)


def _event(kind: str, data: str) -> TurnEvent:
    fields: Mapping[str, Any] = json.loads(data)
    return TurnEvent(
        seq=0,
        conversation_id=ConversationId(fields["conversation_id"]),
        turn_id=TurnId(fields["turn_id"]),
        n=0,
        type=kind,
        data=data,
    )
