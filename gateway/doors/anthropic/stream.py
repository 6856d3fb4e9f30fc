"""A session's events as server-sent events, with previews of what is being written."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from gateway.conversations.model import TurnEvent
from gateway.doors.anthropic.errors import write_anthropic_error
from gateway.doors.anthropic.events import Begun, Item, SessionWriter
from gateway.errors import GatewayError
from gateway.jsonsafe import json_text
from memory.clock import rfc3339


class SessionStream:
    """Writes the events behind `known`, the `seq` of the last one that the client has seen.

    `previews` are the types of events that the client wants to see while they are written.
    """

    def __init__(self, writer: SessionWriter, known: int, previews: Collection[str]) -> None:
        self._writer = writer
        self._known = known
        self._previews = previews
        self._begun: set[str] = set()

    def __call__(self, events: Iterable[TurnEvent]) -> Iterator[bytes]:
        """Yield the stream's text for the next events."""
        for event in events:
            items = list(self._writer.read(event))
            if event.seq <= self._known:  # an announcement has no number and tells nothing
                continue
            frames = [frame for item in items for frame in self._frames(item)]
            if frames:  # with the last of them, so that a client that resumes misses none
                frames[-1] = f"id: {event.id}\n{frames[-1]}"
                yield "".join(frames).encode()

    def _frames(self, item: Item) -> Iterator[str]:
        if not isinstance(item, Begun):
            yield _frame(item.fields)
            return
        if item.kind not in self._previews:
            return
        text = item.text
        if item.id not in self._begun:
            self._begun.add(item.id)
            text = item.whole
            yield _frame({"type": "event_start", "event": {"type": item.kind, "id": item.id}})
        if text:
            content = {"type": "text", "text": text}
            delta = {"type": "content_delta", "index": 0, "content": content}
            yield _frame({"type": "event_delta", "event_id": item.id, "delta": delta})


def failure(session_id: str, now: datetime, error: GatewayError, request_id: str) -> bytes:
    """Return what ends a stream: that the session was deleted, or an error, which clients raise."""
    if error.specific_code == "conversation_deleted":
        told = {"id": f"{session_id}:deleted", "type": "session.deleted"}
        return _frame({**told, "processed_at": rfc3339(now)}).encode()
    _, body = write_anthropic_error(error, request_id)
    return f"event: error\ndata: {json_text(body)}\n\n".encode()


def _frame(fields: Mapping[str, Any]) -> str:
    return f"event: {fields['type']}\ndata: {json_text(fields)}\n\n"
