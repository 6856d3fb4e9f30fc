"""Rounds of work on several servers, a fault in each; after each the program of `bench.history` judges.

The rounds are made from a seed alone. A fault comes at an event of a turn and a pause after it.
"""

import os
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
from anyio.abc import TaskGroup

from bench.history.checks import Violation, judge
from bench.history.records import read_history
from tests.support.fault_clients import Chat, Notes, new_http, note_places
from tests.support.fault_cluster import ClusterNode
from tests.support.fault_state import holder_of, is_quiet, last_event, note_state
from tests.support.faults import LONG, LONG_S, Faults
from tests.support.live_server import bash, script
from tests.support.webhook_receivers import Receiver

MOMENTS = ("turn.started", "text.delta", "turn.completed")
WORDS = "word " * 25
_LASTING = {"delivery", "fault", "healed"}
"""Kinds of records that the histories of later rounds have, too."""
_LOOK_AGAIN_S = 0.05
_SAMPLE_S = 0.5
_MOMENT_S = 15.0
_WORK_S = 180.0
"""A server that ended by itself never takes what is sent to it alone."""
_SETTLED_S = 120.0
"""A webhook whose message was on its way when its server was paused is tried again after a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What clients do, and what breaks."""

    number: int
    fault: str
    node: int
    hits_holder: bool
    """The fault hits the server that runs the first conversation, whichever that is."""
    moment: str
    pause_ms: int
    is_fresh: bool
    """The first conversation is a new one, not that of an earlier round."""
    holds: bool
    """The first turn waits in a command, which ends during the fault, or after it."""
    goes_on_s: float
    """How long after the beginning of the fault the command ends."""
    asks: bool
    """The other turn asks a person, who says yes."""
    queues: bool
    twice: bool
    """Two servers are sent the queued message at the same time, and the other conversation's first."""
    interrupts: bool
    deletes: bool
    """The other conversation is deleted in the middle of the fault."""


def schedule(seed: int, faults: Sequence[str], count: int, nodes: int) -> list[Round]:
    """Return the rounds of a seed; each fault comes about equally often."""
    draw = random.Random(seed)
    drawn = [faults[number % len(faults)] for number in range(count)]
    draw.shuffle(drawn)
    return [_round(draw, number, fault, nodes) for number, fault in enumerate(drawn)]


def _round(draw: random.Random, number: int, fault: str, nodes: int) -> Round:
    """Draw a round; where others take over, mostly a command of the old owner ends after that."""
    is_long = fault in LONG

    def chance(share: float) -> bool:
        return draw.random() < share

    holds = chance(0.8 if is_long else 0.5)
    return Round(
        number=number,
        fault=fault,
        node=draw.randrange(nodes),
        hits_holder=chance(0.8),
        moment="tool.started" if holds else draw.choice(MOMENTS),
        pause_ms=draw.randint(0, 60),
        is_fresh=chance(0.5),
        holds=holds,
        goes_on_s=draw.uniform(LONG_S - 2, LONG_S) if is_long else draw.uniform(0, 1),
        asks=chance(0.3),
        queues=chance(0.6),
        twice=chance(0.5),
        interrupts=chance(0.2),
        deletes=chance(0.2),
    )


@dataclass(slots=True, kw_only=True)
class FaultRounds:
    """The rounds on one cluster."""

    faults: Faults
    receiver: Receiver
    histories: Path
    """The folder where the history of each round is left."""
    http: httpx.AsyncClient
    notes: Notes = field(default_factory=Notes)
    carried: str | None = None
    """The conversation of the round before."""

    async def play(self, round_: Round) -> list[Violation]:
        """Play a round; return what is wrong after it."""
        self.notes = Notes([row for row in self.notes.rows if row["kind"] in _LASTING])
        names = (f"hist-{round_.number}-main", f"hist-{round_.number}-other")
        cluster = self.faults.cluster
        doors = [(node.name, node.url) for node in cluster.nodes]
        main, other = (
            Chat(notes=self.notes, http=self.http, doors=doors, label=name) for name in names
        )
        main.conversation_id = None if round_.is_fresh else self.carried
        chats = (main, other)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._sample, chats)
            with anyio.fail_after(_WORK_S):
                await self._work(tasks, round_, main, other)
            await self._settle(chats)
            tasks.cancel_scope.cancel()
        for chat in chats:
            chat.note_reader_end()
            await chat.ask_again()
        await note_places(self.notes, doors, chats)
        await self._note_state()
        self.notes.write(self.histories / f"round-{round_.number}.jsonl")
        found = judge(read_history(self.notes.lines()))
        self.carried = None if found else main.conversation_id
        if found:
            self.notes = Notes()  # or each later round would find it, too
        return found

    async def _note_state(self) -> None:
        """Note what is stored at a moment when nothing runs or waits; after too long, whatever it is."""
        cluster, is_noted = self.faults.cluster, False
        with anyio.move_on_after(_SETTLED_S):
            while not is_noted:
                is_noted = await anyio.to_thread.run_sync(note_state, self.notes, cluster)
                await anyio.sleep(_LOOK_AGAIN_S)
        if not is_noted:
            noting = partial(note_state, also_busy=True)
            await anyio.to_thread.run_sync(noting, self.notes, cluster)

    def note_delivery(self, status: int) -> None:
        """Note the answer to what a webhook's receiver got last."""
        self.notes.add("delivery", message_id=self.receiver.came[-1].id, status=status)

    async def _work(self, tasks: TaskGroup, round_: Round, main: Chat, other: Chat) -> None:
        workspace = self.faults.cluster.workspace
        os.mkfifo(workspace / f"{main.label}.pipe")
        (workspace / f"{other.label}.txt").touch()
        held = [bash(f"cat {main.label}.pipe")] if round_.holds else []
        asked = [bash(f"rm {other.label}.txt")] if round_.asks else []
        spoken = {"text": WORDS, "delta_delay_ms": 30}
        async with anyio.create_task_group() as work:
            for chat, steps in ((main, held), (other, asked)):
                work.start_soon(_begin, tasks, chat, chat.body(script(*steps, spoken)))
            if round_.twice:
                work.start_soon(_send_to, self._node(round_, 1), other, other.bodies[0])
            with anyio.move_on_after(_MOMENT_S):
                await main.seen[round_.moment].wait()
            await anyio.sleep(round_.pause_ms / 1000)
            work.start_soon(self._break, round_, main)
            if round_.queues:
                self._queue(work, round_, main)
            if round_.interrupts:
                work.start_soon(main.interrupt)
            if round_.deletes:
                work.start_soon(_delete, other)

    async def _break(self, round_: Round, main: Chat) -> None:
        cluster, node = self.faults.cluster, self._node(round_, 0)
        if round_.hits_holder and main.conversation_id is not None:
            url = await anyio.to_thread.run_sync(holder_of, cluster, main.conversation_id)
            node = next((one for one in cluster.nodes if one.url == url), node)
        self.notes.add("fault", fault=round_.fault, node=node.name)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._go_on, round_)
            await self.faults.kinds()[round_.fault](node)
            tasks.cancel_scope.cancel()
        self.notes.add("healed", fault=round_.fault, node=node.name)

    async def _go_on(self, round_: Round) -> None:
        await anyio.sleep(round_.goes_on_s)
        for pipe in self.faults.cluster.workspace.glob("*.pipe"):
            let_go_if_read(pipe)

    def _queue(self, work: TaskGroup, round_: Round, main: Chat) -> None:
        body = main.body(script({"text": "Queued."}))
        for number in range(2 if round_.twice else 1):
            work.start_soon(_send_to, self._node(round_, number), main, body)

    def _node(self, round_: Round, number: int) -> ClusterNode:
        """Return the server that the fault hits, or the so many-th behind it."""
        nodes = self.faults.cluster.nodes
        return nodes[(round_.node + number) % len(nodes)]

    async def _sample(self, chats: Sequence[Chat]) -> None:
        """Note now and then which agents work on a conversation."""
        while True:
            await anyio.sleep(_SAMPLE_S)
            for chat in chats:
                found = await anyio.to_thread.run_sync(self.faults.acting, chat.label)
                if found and chat.conversation_id:
                    self.notes.add("agents", conversation_id=chat.conversation_id, agents=found)

    async def _settle(self, chats: Sequence[Chat]) -> None:
        """Wait until nothing runs or waits, and the readers have seen the end, or for too long."""
        cluster = self.faults.cluster
        with anyio.move_on_after(_SETTLED_S):
            while True:
                for pipe in cluster.workspace.glob("*.pipe"):
                    let_go_if_read(pipe)
                if await anyio.to_thread.run_sync(is_quiet, cluster):
                    break
                await anyio.sleep(_LOOK_AGAIN_S)
            for chat in chats:
                while not chat.is_deleted and chat.conversation_id is not None:
                    last = await anyio.to_thread.run_sync(last_event, cluster, chat.conversation_id)
                    if chat.last_read == last:
                        break
                    await anyio.sleep(_LOOK_AGAIN_S)
        for pipe in cluster.workspace.glob("*.pipe"):
            pipe.unlink()


async def _begin(tasks: TaskGroup, chat: Chat, body: dict[str, Any]) -> None:
    if await chat.send(body):
        tasks.start_soon(chat.read)
        tasks.start_soon(chat.allow)


async def _send_to(node: ClusterNode, chat: Chat, body: dict[str, Any]) -> None:
    async with new_http(node.url) as http:
        await chat.send(body, http)


async def _delete(chat: Chat) -> None:
    with anyio.move_on_after(_MOMENT_S):
        await chat.seen["turn.started"].wait()
        await chat.delete()


def let_go_if_read(pipe: Path) -> None:
    """End the command that reads a pipe, if there is one."""
    with suppress(OSError):
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        os.write(descriptor, b"through\n")
        os.close(descriptor)
