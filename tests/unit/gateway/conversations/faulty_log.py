"""The event log on real stores, with a disk that fails, holds or answers late as a test says."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.lowlevel

from gateway.conversations.event_log import EventLog, TurnEvents
from gateway.conversations.feed import Subscription
from gateway.conversations.model import Turn, TurnEvent
from gateway.conversations.sql.events import EventStore
from gateway.conversations.sql.turns import TurnStore
from gateway.ids import ConversationId
from memory.background import keep_running
from memory.errors import StoreConflict, StoreUnavailable
from memory.stores.sqlite.database import Database
from tests.conformance.suites.conversation_values import Stores, conversation, ended, turn
from tests.support.stores import open_file, stores_on

T = TypeVar("T")

WAIT_S = 60
LONG_S = 1000.0
"""A reader's patience in tests that never wait so long."""


class Disk:
    """Stands before the stores' writes: lets them through, fails them, or holds them."""

    def __init__(self) -> None:
        self.full = False
        self.conflicts: set[str] = set()
        self.writes: list[list[str]] = []
        self.refused = 0
        self.held: anyio.Event | None = None
        self.errors: list[Exception] = []
        """Raised by the next writes, one each."""
        self.lost_answers = 0
        """So many commits succeed and are reported as failed."""

    async def until_refused(self, times: int = 1) -> None:
        while self.refused < times:
            await anyio.lowlevel.checkpoint()

    async def write(self, events: Sequence[TurnEvent], work: Callable[[], Awaitable[T]]) -> T:
        if self.held is not None:
            await self.held.wait()
        await anyio.lowlevel.checkpoint()
        if self.errors:
            raise self.errors.pop()
        if self.full:
            self.refused += 1
            raise StoreUnavailable("The database cannot be written: the disk is full.")
        if self.conflicts & {event.id for event in events}:
            raise StoreConflict("What is stored already contradicts this.")
        done = await work()
        self.writes.append([each_event.id for each_event in events])
        if self.lost_answers:
            self.lost_answers -= 1
            raise StoreUnavailable("The database cannot be written: the disk failed or is full.")
        return done


class FaultyEvents(EventStore):
    def __init__(self, database: Database, disk: Disk) -> None:
        super().__init__(database)
        self._disk = disk
        self.reads = 0
        self.lasts = 0
        self.before_answer: Callable[[], Awaitable[None]] | None = None
        self.before_last: Callable[[], Awaitable[None]] | None = None

    async def append(
        self, events: Sequence[TurnEvent], **options: Any
    ) -> Collection[ConversationId]:
        return await self._disk.write(
            events, lambda: super(FaultyEvents, self).append(events, **options)
        )

    async def last_seq(self, conversation_id: ConversationId) -> int:
        found = await super().last_seq(conversation_id)
        self.lasts += 1
        if self.before_last is not None:
            await self.before_last()
        return found

    async def after(
        self, conversation_id: ConversationId, seq: int, **options: Any
    ) -> Sequence[TurnEvent]:
        found = await super().after(conversation_id, seq, **options)
        self.reads += 1
        if self.before_answer is not None:
            await self.before_answer()
        return found


class FaultyTurns(TurnStore):
    def __init__(self, database: Database, disk: Disk) -> None:
        super().__init__(database)
        self._disk = disk

    async def finish(
        self, turns: Sequence[Turn], events: Sequence[TurnEvent], **options: Any
    ) -> Collection[ConversationId]:
        return await self._disk.write(
            events, lambda: super(FaultyTurns, self).finish(turns, events, **options)
        )


class Bench:
    """A log on real stores with a disk that can fail."""

    def __init__(self, database: Database, **options: Any) -> None:
        self.database = database
        self.disk = Disk()
        self.events = FaultyEvents(database, self.disk)
        self.stores: Stores = stores_on(database)
        self.log = EventLog(
            self.events, FaultyTurns(database, self.disk), **{"retry_s": 0.001, **options}
        )

    async def begin(self, name: str, of: str, *, create: bool = True) -> tuple[Turn, TurnEvents]:
        one = await self.stores.turns.accept(
            turn(name, of), create=conversation(of) if create else None
        )
        return one, self.log.open_new_turn(one)

    async def stored(self, of: str = "a") -> list[TurnEvent]:
        return list(await self.stores.events.after(ConversationId(f"cnv_{of}"), 0, limit=1_000_000))

    async def until_stored(self) -> None:
        while self.log.backlog:
            await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def running(directory: Path, **options: Any) -> AsyncIterator[Bench]:
    async with open_file(directory) as database:
        bench = Bench(database, **options)
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                run = partial(keep_running, "events", bench.log.run, pause_s=0)
                tasks.start_soon(run)
                yield bench
                tasks.cancel_scope.cancel()


async def complete(*made: tuple[Turn, TurnEvents]) -> None:
    """Complete turns at the same time."""
    async with anyio.create_task_group() as tasks:
        for one, events in made:
            tasks.start_soon(events.complete, ended(one), {})


async def take(subscription: Subscription, count: int) -> list[TurnEvent]:
    found: list[TurnEvent] = []
    while len(found) < count:
        found += await subscription.next(LONG_S)
    return found


def texts(events: Sequence[TurnEvent]) -> list[Any]:
    return [json.loads(event.data).get("text") for event in events]


def numbers(events: Sequence[TurnEvent]) -> list[int]:
    return [event.n for event in events]
