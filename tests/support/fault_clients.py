"""Clients that write down what they did and were told, in the form of `bench.history`."""

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx

from tests.support.live_server import DEADLINE_S, EventStream

_AGAIN_S = 0.1
_SILENT_S = 3.0
"""After so long without an event a reader connects again, perhaps to another server."""
_ANSWER_S = 10.0


@dataclass(slots=True)
class Notes:
    """A history while it is being made."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, kind: str, **fields: Any) -> None:
        """Note something."""
        self.rows.append({"kind": kind, **fields})

    def lines(self) -> list[str]:
        """Return the lines of the file."""
        return [json.dumps(row, ensure_ascii=False) for row in self.rows]

    def write(self, path: Path) -> None:
        """Write the file, for a person and the program."""
        path.write_text("\n".join(self.lines()) + "\n", "utf-8")


def new_http(url: str) -> httpx.AsyncClient:
    """Return a client that makes a connection for each request."""
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.AsyncClient(base_url=url, limits=limits, timeout=_ANSWER_S, trust_env=False)


@dataclass(slots=True, kw_only=True)
class Chat:
    """One conversation as its clients know it."""

    notes: Notes
    http: httpx.AsyncClient
    """Through the road that takes the next server each time."""
    doors: Sequence[tuple[str, str]]
    """The servers' names and addresses: its reader goes to any of them."""
    label: str
    """In each of its messages, and in the commands of its agent."""
    conversation_id: str | None = None
    turn_ids: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    is_deleted: bool = False
    last_read: str = ""
    """The id of the event that its reader saw last."""
    seen: dict[str, anyio.Event] = field(default_factory=lambda: defaultdict(anyio.Event))
    """By the type of event: set when the reader saw the first."""
    asked: list[str] = field(default_factory=list)
    """The approvals that the reader was shown."""

    def body(self, message: str) -> dict[str, Any]:
        """Make the body of a message of its own."""
        number = len(self.bodies)
        named = {"conversation_id": self.conversation_id} if self.conversation_id else {}
        key = f"{self.label}-{number}"
        body = {"message": f"{key} {message}", "idempotency_key": key, **named}
        self.bodies.append(body)
        return body

    def _note(self, body: dict[str, Any], status: int | None, told: Any) -> None:
        known = {"text": body["message"], "key": body["idempotency_key"], "status": status}
        if status != 200:
            self.notes.add("message", **known)
            return
        ids = {name: told[name] for name in ("conversation_id", "turn_id")}
        answer = {"answer": told} if "outcome" in told else {}
        self.notes.add("message", **known, **ids, **answer)
        self.conversation_id = ids["conversation_id"]
        if ids["turn_id"] not in self.turn_ids:
            self.turn_ids.append(ids["turn_id"])

    async def send(self, body: dict[str, Any], http: httpx.AsyncClient | None = None) -> bool:
        """Send a message until a server tells of its turn; False if it was refused for good."""
        while True:
            status = None
            try:
                request = (http or self.http).stream("POST", "/chat/stream", json=body)
                async with request as response:
                    status = response.status_code
                    if status == 200:
                        first = await anext(EventStream(response))
                        if first.id:
                            self._note(body, status, first.data)
                            return True
                        status = 503
            except (httpx.HTTPError, StopAsyncIteration):
                status = None
            self._note(body, status, None)
            if status is not None and status < 500:
                return False
            await anyio.sleep(_AGAIN_S)

    async def ask_again(self) -> None:
        """Ask for the result of every message that was acknowledged, by its key."""
        for body in self.bodies:
            if self.is_deleted:
                return
            try:
                answer = await self.http.post("/chat", json=body)
            except httpx.HTTPError:
                self._note(body, None, None)
                continue
            self._note(body, answer.status_code, answer.json())

    async def call(self, method: str, path: str, body: Any = None) -> int | None:
        """Ask for something until a server answers; the status. 5xx counts as no answer."""
        for _ in range(100):
            try:
                answer = await self.http.request(method, path, json=body)
                if answer.status_code < 500:
                    return answer.status_code
            except httpx.HTTPError:
                pass
            await anyio.sleep(_AGAIN_S)
        return None

    async def interrupt(self) -> None:
        await self.call("POST", f"/conversations/{self.conversation_id}/interrupt")

    async def delete(self) -> None:
        """Delete the conversation, and note what becomes of it."""
        self.is_deleted = True
        self.notes.add("deletion", conversation_id=self.conversation_id)
        status = await self.call("DELETE", f"/conversations/{self.conversation_id}")
        if status in {200, 204, 404}:  # 404: an attempt without an answer had deleted it
            self.notes.add("deleted", conversation_id=self.conversation_id)

    async def allow(self) -> None:
        """Allow once what the agent asks, at any server."""
        await self.seen["approval.requested"].wait()
        await self.call("POST", f"/approvals/{self.asked[-1]}", {"decision": "allow"})

    async def read(self) -> None:
        """Read the conversation from the last turn's first event on until cancelled, over as many
        connections as it takes.
        """
        after = f"{self.turn_ids[-1]}:0"
        draw = random.Random(self.label)
        timeout = httpx.Timeout(_ANSWER_S, read=_SILENT_S)
        while not self.is_deleted:
            node, url = draw.choice(self.doors)
            where = {"conversation_id": self.conversation_id, "after": after, "node": node}
            path = f"{url}/conversations/{self.conversation_id}/events"
            try:
                request = self.http.stream(
                    "GET", path, headers={"Last-Event-ID": after}, timeout=timeout
                )
                async with request as response:
                    if response.status_code != 200:
                        await anyio.sleep(_AGAIN_S)
                        continue
                    self.notes.add("connection", reader=self.label, **where)
                    async for event in EventStream(response):
                        if not event.id:
                            continue
                        row = {"id": event.id, "type": event.type, "data": event.data}
                        self.notes.add("read", reader=self.label, **row)
                        if event.type == "approval.requested":
                            self.asked.append(event.data["approval_id"])
                        after = self.last_read = event.id
                        self.seen[event.type].set()
            except httpx.HTTPError:
                await anyio.sleep(_AGAIN_S)

    def note_reader_end(self) -> None:
        """Note that the reader has had its time."""
        if not self.is_deleted:
            self.notes.add("reader_end", reader=self.label)


async def note_places(
    notes: Notes, doors: Sequence[tuple[str, str]], chats: Sequence[Chat]
) -> None:
    """Note which of the conversations each server shows; `doors` has their names and addresses."""
    for name, url in doors:
        async with new_http(url) as http:
            http.timeout = DEADLINE_S  # nothing is broken now, and nobody asks again
            for chat in chats:
                if chat.conversation_id is not None:
                    answer = await http.get(f"/conversations/{chat.conversation_id}")
                    row = {"conversation_id": chat.conversation_id, "status": answer.status_code}
                    notes.add("lookup", node=name, **row)
            listed = (await http.get("/conversations?limit=100")).json()["conversations"]
            notes.add("list", node=name, conversation_ids=[row["id"] for row in listed])
