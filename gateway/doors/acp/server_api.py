"""A running Candor over its own HTTP routes, as the bridge to an editor needs it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final

import httpx

from gateway.conversations.model import TurnEvent
from gateway.ids import ConversationId, TurnId

_TIMEOUT: Final = httpx.Timeout(30.0, read=60.0)
"""A stream is never silent for longer than 15 seconds."""


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
        """Return the answer to a request."""
        try:
            answer = await self._http.request(method, path, **sent)
        except httpx.HTTPError:
            raise ServerRefused(_GONE) from None
        if answer.is_error:
            raise _refusal(answer)
        return answer.json()

    @asynccontextmanager
    async def ask(
        self, conversation_id: str, message: str
    ) -> AsyncIterator[AsyncIterator[TurnEvent]]:
        """Send a message; give the events of its turn."""
        body = {"message": message, "conversation_id": conversation_id}
        try:
            async with self._http.stream("POST", "/chat/stream", json=body) as answer:
                if answer.is_error:
                    await answer.aread()
                    raise _refusal(answer)
                yield _events(answer)
        except httpx.HTTPError:
            raise ServerRefused(_GONE) from None


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
