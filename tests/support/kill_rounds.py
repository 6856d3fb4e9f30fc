"""Rounds of work on one data directory, each ended by killing the server at a drawn moment, and what must hold after.

A schedule is made from a seed alone. A moment is an event of the turn and a pause after it, not a
time since the start, so the same seed kills at the same points on a slow machine and on a fast one.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import psutil

from tests.support.live_server import LiveClient, LiveServer, script, start_server

EARLY = ("turn.started", "tool.started", "tool.finished", "text.delta")
DONE = "turn.completed"
_LONGEST_PAUSE_MS = 40
_WORDS = "word " * 12
_WAIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one server is given to do, and when it is killed."""

    number: int
    fresh: bool
    """True if the turn begins a conversation."""
    queue: bool
    """True if a second message waits behind the turn."""
    episode: bool
    """True if an episode is written during the turn."""
    after: str
    """The type of the event that the kill follows."""
    pause_ms: int

    @property
    def file_name(self) -> str:
        """The file that the turn writes."""
        return f"round-{self.number}.txt"

    @property
    def message(self) -> str:
        """The message of the turn."""
        path = {"file_path": self.file_name, "content": f"round {self.number}"}
        steps = ({"tool": "Write", "input": path}, {"text": _WORDS, "delta_delay_ms": 5})
        return script(*steps, say=f"Round {self.number}, 请执行。")


def schedule(seed: int, count: int) -> list[Round]:
    """Return the rounds of a seed; half of them, in a drawn order, kill after the turn's end."""
    draw = random.Random(seed)
    moments = [DONE if number % 2 else draw.choice(EARLY) for number in range(count)]
    draw.shuffle(moments)
    return [_round(draw, number, after) for number, after in enumerate(moments)]


def _round(draw: random.Random, number: int, after: str) -> Round:
    return Round(
        number=number,
        fresh=draw.random() < 0.3,
        queue=draw.random() < 0.3,
        episode=draw.random() < 0.3,
        after=after,
        pause_ms=draw.randint(0, _LONGEST_PAUSE_MS),
    )


@dataclass(slots=True, kw_only=True)
class Seen:
    """What a client had been told of one turn when the server was killed."""

    round: Round
    message: str
    conversation_id: str
    turn_id: str
    events: list[tuple[str, str, Mapping[str, Any]]] = field(default_factory=list)
    completed: bool = False
    """True if the turn had ended by itself."""


@dataclass(slots=True)
class KillRounds:
    """The rounds on one directory and all that was promised in them."""

    directory: Path
    seen: list[Seen] = field(default_factory=list)
    episodes: dict[str, str] = field(default_factory=dict)
    """The titles of the episodes that were accepted, by id."""
    conversation_id: str | None = None

    async def start(self) -> LiveServer:
        """Start the server again; no agent of the one before may be left."""
        server = await anyio.to_thread.run_sync(partial(start_server, self.directory))
        started = psutil.Process(server.process.pid).create_time()
        old = [pid for pid, one in server.agents().items() if one.create_time() < started]
        assert old == [], "agents of a killed server are left"
        return server

    async def play(self, server: LiveServer, round_: Round) -> None:
        """Do a round's work and kill the server."""
        if round_.fresh:
            self.conversation_id = None
        async with server.client() as client, anyio.create_task_group() as tasks:
            if round_.episode:
                tasks.start_soon(self._write_episode, client, round_)
            await self._turn(server, client, round_)

    async def _turn(self, server: LiveServer, client: LiveClient, round_: Round) -> None:
        key = f"round-{round_.number}"
        started = client.stream(round_.message, self.conversation_id, idempotency_key=key)
        async with started as events, anyio.create_task_group() as tasks:
            first = await anext(events)
            self.conversation_id = str(first.data["conversation_id"])
            turn = Seen(
                round=round_,
                message=round_.message,
                conversation_id=self.conversation_id,
                turn_id=str(first.data["turn_id"]),
            )
            self.seen.append(turn)
            if round_.queue:
                tasks.start_soon(self._queue, client, round_)
            if first.type != round_.after:
                await events.until(round_.after)
            await anyio.sleep(round_.pause_ms / 1000)
            server.kill()
            turn.events = [(event.id, event.type, event.data) for event in events.seen]

    async def _queue(self, client: LiveClient, round_: Round) -> None:
        """Send a message that waits; it counts once the server has told of it."""
        message = script({"text": f"Queued in round {round_.number}."})
        try:
            async with client.stream(message, self.conversation_id) as events:
                queued = await anext(events)
                place = queued.data["conversation_id"], queued.data["turn_id"]
                turn = Seen(
                    round=round_, message=message, conversation_id=place[0], turn_id=place[1]
                )
                self.seen.append(turn)
        except (httpx.HTTPError, StopAsyncIteration):
            return

    async def _write_episode(self, client: LiveClient, round_: Round) -> None:
        title = f"Episode of round {round_.number}"
        sections = {"context": f"{title}: 服务器在第 {round_.number} 轮被终止。"}
        body = {"episode_type": "incident", "title": title, "sections": sections}
        try:
            answer = await client.http.post("/memory/episodes", json=body)
        except httpx.HTTPError:
            return
        assert answer.status_code == 201, answer.text
        self.episodes[answer.json()["episode_id"]] = title

    async def check(self, server: LiveServer, since: int = 0) -> None:
        """Assert everything that was promised from a place of `seen` on."""
        async with server.client(deadline_s=_WAIT_S * 10) as client:
            for turn in self.seen[since:]:
                await self._check_turn(server, client, turn)
            for episode_id in self.episodes:
                assert (await client.get(f"/memory/items/{episode_id}"))["id"] == episode_id

    async def _check_turn(self, server: LiveServer, client: LiveClient, turn: Seen) -> None:
        told = await client.replay(turn.conversation_id, turn.turn_id)
        mine = [
            (item.id, item.type, item.data) for item in told if item.data["turn_id"] == turn.turn_id
        ]
        assert [event_id for event_id, _, _ in mine] == [
            f"{turn.turn_id}:{n}" for n in range(1, len(mine) + 1)
        ]
        assert [kind for _, kind, _ in mine].count("turn.completed") == 1
        before = [event for event in turn.events if event[2]["turn_id"] == turn.turn_id]
        assert mine[: len(before)] == before, "an event that was told is gone or changed"
        path = f"/conversations/{turn.conversation_id}/messages"
        kept = [
            message
            for message in (await client.get(path))["messages"]
            if message["turn_id"] == turn.turn_id
        ]
        assert [item["role"] for item in kept] == ["user", "assistant"]
        result = mine[-1][2]
        assert (kept[0]["text"], kept[1]["result"]) == (turn.message, result)
        *_, last = server.journal(result)
        assert (last["kind"], last["outcome"]) == ("response", result["outcome"])
        turn.completed = result["outcome"] == "answered"
        if turn.message == turn.round.message:
            self._check_file(server, turn, result)
            body = {"message": turn.message, "idempotency_key": f"round-{turn.round.number}"}
            if turn.round.fresh:
                again = await client.http.post("/chat", json=body)
                assert again.json() == result

    def _check_file(self, server: LiveServer, turn: Seen, result: Mapping[str, Any]) -> None:
        """The file is there if the result says so; if it is there, the result does not deny it."""
        path = server.workspace / turn.round.file_name
        statuses = [call["status"] for call in result["tools"]]
        if path.exists():
            assert path.read_text("utf-8") == f"round {turn.round.number}"
            assert statuses in (["ok"], ["unknown"], ["interrupted"])
        else:
            assert "ok" not in statuses
        assert result["outcome"] in {"answered", "engine_failed"}
