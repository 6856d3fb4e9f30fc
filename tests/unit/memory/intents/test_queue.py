from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskGroup

from memory.background import keep_running
from memory.errors import StoreUnavailable
from memory.intents.chronicle import Guard, Recording, SqlChronicle, unguarded
from memory.intents.queue import MAX_WAITING, IntentQueue
from memory.intents.record import IntentRecorder
from memory.intents.registry import MemoryIntent
from memory.stores.sqlite.database import Database
from policies.secrets import mask_secrets
from tests.support.episodes import open_memory
from tests.support.intents import tool_result
from tests.support.quick_databases import be_as_shipped, levels_of_writes

WAIT_S = 30


class Watched(SqlChronicle):
    """Reports how much is recorded, and can be blocked."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.errors: list[Exception] = []
        """Raised by the next calls, one each."""
        self.ids: list[str] = []
        self.changed = anyio.Event()
        self.opened = anyio.Event()
        self.opened.set()
        self.asked = anyio.Event()

    async def record(
        self, recordings: Sequence[Recording], guard: Guard = unguarded, *, is_synced: bool = True
    ) -> Sequence[str]:
        self.asked.set()
        await self.opened.wait()
        if self.errors:
            raise self.errors.pop()
        new = await super().record(recordings, guard, is_synced=is_synced)
        self.ids += new
        self.changed.set()
        return new

    async def until(self, count: int) -> None:
        with anyio.fail_after(WAIT_S):
            while len(self.ids) < count:
                self.changed = anyio.Event()
                await self.changed.wait()


@dataclass
class Opened:
    """A queue on a chronicle, and the tasks that run it."""

    queue: IntentQueue
    chronicle: Watched
    tasks: TaskGroup
    database: Database

    def put(self, intents: Iterable[MemoryIntent]) -> None:
        for intent in intents:
            self.queue.put(intent)


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[Opened]:
    async with open_memory(directory) as database, anyio.create_task_group() as tasks:
        chronicle = Watched(database)
        queue = IntentQueue(IntentRecorder(chronicle, mask_secrets), pause_s=0)
        yield Opened(queue, chronicle, tasks, database)
        tasks.cancel_scope.cancel()


async def test_what_is_put_is_recorded_in_its_order(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        given = calls(250)
        here.put(given[:120])
        here.tasks.start_soon(here.queue.run)
        await here.chronicle.until(120)
        here.put(given[120:])
        await here.chronicle.until(250)
        assert here.chronicle.ids == ids(given)
        assert here.queue.dropped == 0


async def test_it_does_not_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_as_shipped(monkeypatch)
    async with opened(tmp_path) as here:
        levels = await levels_of_writes(here.database)
        here.put(calls(2))
        here.tasks.start_soon(here.queue.run)
        await here.chronicle.until(2)
        assert set(levels) == {"NORMAL"}


async def test_what_waits_at_the_end_is_recorded_all_the_same(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(here.queue.run)
            tasks.cancel_scope.cancel()
            here.put(calls(3))
        assert here.chronicle.ids == ids(calls(3))


async def test_one_that_is_refused_takes_no_other_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path) as here:
        given = calls(5)
        here.put([*given[:2], replace(given[2], payload={}), *given[3:]])
        here.tasks.start_soon(here.queue.run)
        await here.chronicle.until(4)
        assert here.chronicle.ids == ids([*given[:2], *given[3:]])
        assert here.queue.dropped == 1
    assert [record.message for record in caplog.records] == ["intent_refused"]


async def test_what_cannot_be_written_now_is_written_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path) as here:
        here.chronicle.errors = [StoreUnavailable("not now") for _ in range(3)]
        here.put(calls(2))
        here.tasks.start_soon(here.queue.run)
        await here.chronicle.until(2)
        assert here.chronicle.ids == ids(calls(2))
    assert [record.message for record in caplog.records] == ["intents_not_recorded"] * 3


async def test_too_many_that_cannot_be_written_are_dropped_oldest_first(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        here.chronicle.opened = anyio.Event()
        here.chronicle.errors = [StoreUnavailable("not now")]
        given = calls(MAX_WAITING + 100)
        here.put(given[:MAX_WAITING])
        here.tasks.start_soon(here.queue.run)
        with anyio.fail_after(WAIT_S):
            await here.chronicle.asked.wait()
        here.put(given[MAX_WAITING:])
        here.chronicle.opened.set()
        await here.chronicle.until(MAX_WAITING)
        assert here.chronicle.ids == ids(given[100:])
        assert here.queue.dropped == 100


async def test_an_error_that_no_store_foresaw_loses_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as here:
        here.chronicle.errors = [OSError("no descriptor is left") for _ in range(4)]
        here.put(calls(3))
        here.tasks.start_soon(partial(keep_running, "intents", here.queue.run, pause_s=0))
        await here.chronicle.until(3)
        assert here.chronicle.ids == ids(calls(3))
        assert here.chronicle.errors == []


def calls(count: int) -> list[MemoryIntent]:
    return [tool_result(tool_use_id=str(n)) for n in range(count)]


def ids(intents: Sequence[MemoryIntent]) -> list[str]:
    return [intent.id for intent in intents]
