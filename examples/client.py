"""Candor with httpx: stream a turn, approve its tool calls, reconnect without losing an event.

    python client.py [MESSAGE]

GATEWAY_URL names the server, GATEWAY_TOKEN your token if it wants one.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import httpx

SILENCE_S = 40  # the server sends a comment at least every 15 seconds
RETRY_S = 1


@dataclass(frozen=True)
class Event:
    """A server-sent event."""

    id: str
    type: str
    data: dict[str, Any]


def read_events(response: httpx.Response) -> Iterator[Event]:
    """Yield the events of a response as they come."""
    response.raise_for_status()
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield Event(fields["id"], fields["event"], json.loads(fields["data"]))
            fields = {}


def events_after(
    http: httpx.Client, conversation_id: str, event_id: str
) -> AbstractContextManager[httpx.Response]:
    """Open the stream of a conversation's events after one of them."""
    path = f"/conversations/{conversation_id}/events"
    return http.stream("GET", path, headers={"Last-Event-ID": event_id})


def approve(http: httpx.Client, event: Event) -> None:
    """Allow the tool call that an `approval.requested` event asks about."""
    print(f"[allowing: {event.data['name']} {event.data['summary']}]")
    answer = http.post(f"/approvals/{event.data['approval_id']}", json={"decision": "allow"})
    if answer.status_code != httpx.codes.CONFLICT:  # somebody else has answered
        answer.raise_for_status()


def run_turn(http: httpx.Client, message: str) -> dict[str, Any]:
    """Send a message and return the turn result, over as many connections as it takes."""
    stream: AbstractContextManager[httpx.Response]
    stream = http.stream("POST", "/chat/stream", json={"message": message})
    last: Event | None = None
    while True:
        try:
            with stream as response:
                for event in read_events(response):
                    last = event
                    if event.type == "text.delta":
                        print(event.data["text"], end="", flush=True)
                    elif event.type == "approval.requested":
                        approve(http, event)
                    elif event.type == "turn.completed":
                        print()
                        return event.data
        except httpx.TransportError:
            if last is None:  # the message may not have arrived; see `idempotency_key`
                raise
        time.sleep(RETRY_S)
        assert last is not None
        stream = events_after(http, last.data["conversation_id"], last.id)


def main() -> None:
    """Run one turn and print how it ended."""
    message = " ".join(sys.argv[1:]) or "write hello to greeting.txt"
    token = os.environ.get("GATEWAY_TOKEN")
    with httpx.Client(
        base_url=os.environ.get("GATEWAY_URL", "http://127.0.0.1:8000"),
        headers={"Authorization": f"Bearer {token}"} if token else {},
        timeout=SILENCE_S,
    ) as http:
        result = run_turn(http, message)
    print(f"[{result['outcome']}]")
    for call in result["tools"]:
        print(f"[{call['status']}: {call['name']} {call['summary']}]")


if __name__ == "__main__":
    main()
