"""Clients that ask for events and do not read them."""

import asyncio
import json
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from gateway.conversations.sql.turns import TurnStore
from gateway.http.connections import ConnectionLimits, Connections
from gateway.ids import TurnId
from tests.service.http.stage import HOLD, Stage, staged
from tests.service.http.wired import HOST
from tests.support.asgi import served

READERS = 100
EVENTS = 300
EVENT_CHARS = 4_000
PER_READER_BYTES = 130_000
"""What may wait for one of them; the events that it asked for are twenty-eight times as much."""
TIMES = 3
DEADLINE_S = 50


@dataclass
class Here:
    stage: Stage
    port: int
    connections: Connections
    dropped: Counter[str] = field(default_factory=Counter)
    conversation_id: str = ""
    turn_id: str = ""

    def request(self, after: str) -> bytes:
        path = f"/conversations/{self.conversation_id}/events"
        head = f"GET {path} HTTP/1.1\r\nLast-Event-ID: {after}\r\n"
        return head.encode() + HOST + b"\r\n"


@asynccontextmanager
async def with_a_long_conversation(directory: Path, patience_s: float) -> AsyncIterator[Here]:
    dropped: Counter[str] = Counter()
    limits = ConnectionLimits(patience_s=patience_s)
    connections = Connections(limits, lambda reason: dropped.update([reason]))
    with anyio.fail_after(DEADLINE_S):
        async with staged(directory) as stage, served(stage.app, connections=connections) as port:
            here = Here(stage, port, connections, dropped)
            turn = await stage.client().say("hi")
            here.conversation_id, here.turn_id = turn["conversation_id"], turn["turn_id"]
            stored = await TurnStore(stage.database).get(TurnId(here.turn_id))
            assert stored is not None
            events = await stage.log.open_turn(stored)
            for k in range(EVENTS):  # pieces of one kind that follow each other would be joined
                kind = "thinking.delta" if k % 2 else "text.delta"
                events.emit(kind, text=f"{k} ".ljust(EVENT_CHARS, "长"))
            await events.flush()
            yield here


@asynccontextmanager
async def asking(here: Here, after: str) -> AsyncIterator[socket.socket]:
    """Ask for the events after one, and read nothing; the buffer of one's own is small."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        client.setblocking(False)  # noqa: FBT003  the socket's own signature
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", here.port))
        await loop.sock_sendall(client, here.request(after))
        yield client


async def test_readers_that_read_nothing_hold_little_memory_and_are_dropped(tmp_path: Path) -> None:
    async with with_a_long_conversation(tmp_path, 0.5) as here, AsyncExitStack() as stack:
        most = 0
        for _ in range(READERS):
            await stack.enter_async_context(asking(here, f"{here.turn_id}:0"))
            most = max(most, here.connections.buffered_bytes)
        while here.dropped["slow_reader"] < READERS:
            most = max(most, here.connections.buffered_bytes)
            await anyio.sleep(0.01)
        assert 0 < most < READERS * PER_READER_BYTES
        while here.stage.readers_of(here.conversation_id):  # noqa: ASYNC110
            await anyio.sleep(0.01)
        assert here.dropped == {"slow_reader": READERS}
        assert here.connections.buffered_bytes == 0


async def test_a_reader_that_was_dropped_misses_nothing_when_it_comes_back(tmp_path: Path) -> None:
    async with with_a_long_conversation(tmp_path, 0.2) as here:
        seen: list[str] = []
        while len(seen) < 3 + EVENTS:
            async with asking(here, seen[-1] if seen else f"{here.turn_id}:0") as client:
                before = here.dropped["slow_reader"]
                while before < TIMES and here.dropped["slow_reader"] == before:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
                seen += await whole_events(client, most=3 + EVENTS - len(seen))
        assert seen == [f"{here.turn_id}:{n}" for n in range(1, 4 + EVENTS)]
        assert here.dropped["slow_reader"] >= TIMES


async def test_a_turn_whose_reader_reads_nothing_goes_on(tmp_path: Path) -> None:
    async with with_a_long_conversation(tmp_path, 0.2) as here, asking(here, f"{here.turn_id}:0"):
        body = json.dumps({"message": HOLD, "conversation_id": here.conversation_id})
        http = here.stage.client()
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                answer = await http.post(
                    "/chat", content=body, headers={"Content-Type": "application/json"}
                )
                assert answer.json()["outcome"] == "answered"

            tasks.start_soon(run)
            while not here.dropped["slow_reader"]:  # noqa: ASYNC110
                await anyio.sleep(0.01)
            here.stage.release()


async def whole_events(client: socket.socket, *, most: int) -> list[str]:
    """Read until the connection ends, or `most` events have come; give the ids of the whole ones."""
    read = b""
    while read.count(b"\n\n") < most:
        try:
            piece = await asyncio.get_running_loop().sock_recv(client, 65_536)
        except ConnectionResetError:
            break
        if not piece:
            break
        read += piece
    return [
        line.removeprefix("id: ")
        for event in _unchunked(read).split(b"\n\n")[:-1]
        for line in event.decode().split("\n")
        if line.startswith("id: ")
    ]


def _unchunked(response: bytes) -> bytes:
    _, _, rest = response.partition(b"\r\n\r\n")
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size or b"0", 16)
        body, rest = body + rest[:length], rest[length + 2 :]
    return body
