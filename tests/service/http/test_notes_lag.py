"""While one person's question has two thousand notes read, another one's stream goes on."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from blockbuster import BlockBuster

from memory.notes import index, notes_context
from memory.notes.folder import NoteText, read_note_blocking
from memory.recall.query import QuotedNotes
from tests.service.http.reading import reading
from tests.service.http.stage import LONG, Json, Stage, staged
from tests.support.services import ask, result_of, running_services, script, send
from tests.unit.memory.notes.folders import many_notes

QUESTION = "what do you remember about the deploy window?"
LONG_EVENTS = 3002
ON_THE_LOOP_S = 0.5
"""So long a reading on the loop is held up in vain, before it goes on."""
LIMIT_S = 20


@dataclass(slots=True)
class Gate:
    """Holds up the reading of notes at the first one, until it may go on."""

    waits_s: float = LIMIT_S
    began: threading.Event = field(default_factory=threading.Event)
    may_go_on: threading.Event = field(default_factory=threading.Event)
    is_reading: bool = False

    def read(self, *arguments: object, **more: object) -> NoteText | None:
        if not self.began.is_set():
            self.is_reading = True
            self.began.set()
            self.may_go_on.wait(self.waits_s)
        return read_note_blocking(*arguments, **more)  # type: ignore[arg-type]  # passed on

    async def wait_begun(self) -> None:
        with anyio.fail_after(LIMIT_S):
            while not self.began.is_set():
                await anyio.lowlevel.checkpoint()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made = Gate()
    monkeypatch.setattr(notes_context, "read_note_blocking", made.read)
    yield made
    made.may_go_on.set()


async def events_meanwhile(stage: Stage, gate: Gate) -> tuple[int, Json]:
    """Count the events that Bob gets while Ann's notes are read; gives also what Ann gets."""
    answers: list[Json] = []

    async def have_notes_read() -> None:
        answer = await stage.client("ann").post("/memory/context", json={"queries": [QUESTION]})
        gate.is_reading = False
        answers.append(answer.json())

    counted = 0
    with anyio.fail_after(2 * LIMIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(have_notes_read)
            await gate.wait_begun()
            bob = stage.client("bob")
            async with reading(bob, "POST", "/chat/stream", json={"message": LONG}) as stream:
                while await stream.next() is not None:
                    counted += gate.is_reading
            gate.may_go_on.set()
    return counted, answers[0]


async def test_a_stream_goes_on_while_another_ones_notes_are_read(
    tmp_path: Path, gate: Gate
) -> None:
    await anyio.to_thread.run_sync(many_notes, tmp_path)
    async with staged(tmp_path, users=("ann", "bob"), on_port=True) as stage:
        counted, pack = await events_meanwhile(stage, gate)
    assert counted == LONG_EVENTS
    assert "Answer from them" in pack["text"]
    assert "The deploy window of the shop" in pack["text"]


@pytest.fixture
def on_the_loop(
    monkeypatch: pytest.MonkeyPatch, gate: Gate, _blocking_calls_fail: BlockBuster
) -> None:
    """Have the notes read on the loop itself, as must never be."""

    async def content(
        self: index.NoteIndex, text: str, *, budget_chars: int, **_: object
    ) -> QuotedNotes:
        await anyio.lowlevel.checkpoint()
        telling = notes_context.Telling(budget_chars=budget_chars)
        return notes_context.tell_notes(self._workspace, text, telling)

    _blocking_calls_fail.deactivate()
    gate.waits_s = ON_THE_LOOP_S
    monkeypatch.setattr(index.NoteIndex, "content", content)


@pytest.mark.usefixtures("on_the_loop")
async def test_read_on_the_loop_they_would_hold_it_up(tmp_path: Path, gate: Gate) -> None:
    await anyio.to_thread.run_sync(many_notes, tmp_path)
    async with staged(tmp_path, users=("ann", "bob"), on_port=True) as stage:
        counted, pack = await events_meanwhile(stage, gate)
    assert counted < LONG_EVENTS / 10
    assert "Answer from them" in pack["text"]


async def test_a_turn_runs_while_another_conversations_notes_are_read(
    tmp_path: Path, gate: Gate
) -> None:
    make_workspace = partial(many_notes, tmp_path)
    workspace = await anyio.to_thread.run_sync(make_workspace)
    async with running_services(
        tmp_path, workspace=workspace, recall_deadline_ms=LIMIT_S * 1000
    ) as services:
        waiting = await send(services, f"{QUESTION}\n{script({'echo': 'context'})}")
        await gate.wait_begun()
        other = await ask(services, script({"text": "meanwhile"}))
        assert not gate.may_go_on.is_set()
        gate.may_go_on.set()
        told = await result_of(services, waiting)
    assert other["reply"] == "meanwhile"
    assert "The deploy window of the shop" in told["reply"]
    assert not {"notes_timeout", "notes_error", "memory_timeout"} & set(told["memory"]["degraded"])
