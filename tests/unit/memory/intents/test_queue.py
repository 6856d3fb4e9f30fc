from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from memory.background import keep_running
from memory.errors import StoreUnavailable
from memory.intents.chronicle import Recording
from memory.intents.queue import MAX_WAITING, IntentQueue
from memory.intents.record import IntentRecorder
from memory.intents.registry import MemoryIntent
from memory.stores.sqlite.chronicle import SqliteChronicle
from memory.stores.sqlite.database import Database
from policies.secrets import mask_secrets
from tests.support.episodes import open_memory
from tests.support.intents import tool_result

WAIT_S = 30


class Watched(SqliteChronicle):
    """Tells how much is recorded, and can be kept from recording."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.fails = 0
        self.errors: list[Exception] = []
        """Raised by the next calls, one each."""
        self.ids: list[str] = []
        self.changed = anyio.Event()
        self.opened = anyio.Event()
        self.opened.set()
        self.asked = anyio.Event()

    async def record(self, recordings: Sequence[Recording]) -> Sequence[str]:
        self.asked.set()
        await self.opened.wait()
        if self.errors:
            raise self.errors.pop()
        if self.fails:
            self.fails -= 1
            raise StoreUnavailable("not now")
        new = await super().record(recordings)
        self.ids += new
        self.changed.set()
        return new

    async def until(self, count: int) -> None:
        with anyio.fail_after(WAIT_S):
            while len(self.ids) < count:
                self.changed = anyio.Event()
                await self.changed.wait()


@asynccontextmanager
async def queue_on(directory: Path) -> AsyncIterator[tuple[IntentQueue, Watched]]:
    async with open_memory(directory) as database:
        chronicle = Watched(database)
        yield IntentQueue(IntentRecorder(chronicle, mask_secrets), pause_s=0), chronicle


def calls(count: int) -> list[MemoryIntent]:
    return [tool_result(tool_use_id=str(n)) for n in range(count)]


def ids(intents: Sequence[MemoryIntent]) -> list[str]:
    return [intent.id for intent in intents]


async def test_what_is_put_is_recorded_in_its_order(tmp_path: Path) -> None:
    async with queue_on(tmp_path) as (queue, chronicle), anyio.create_task_group() as tasks:
        given = calls(250)
        for value in given[:120]:
            queue.put(value)
        await tasks.start(queue.run)
        await chronicle.until(120)
        for value in given[120:]:
            queue.put(value)
        await chronicle.until(250)
        assert chronicle.ids == ids(given)
        assert queue.dropped == 0
        tasks.cancel_scope.cancel()


async def test_what_waits_at_the_end_is_recorded_all_the_same(tmp_path: Path) -> None:
    async with queue_on(tmp_path) as (queue, chronicle):
        async with anyio.create_task_group() as tasks:
            await tasks.start(queue.run)
            tasks.cancel_scope.cancel()
            for call in calls(3):
                queue.put(call)
        assert chronicle.ids == ids(calls(3))


async def test_one_that_is_refused_takes_no_other_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with queue_on(tmp_path) as (queue, chronicle), anyio.create_task_group() as tasks:
        given = calls(5)
        wrong = replace(given[2], payload={})
        for value in (*given[:2], wrong, *given[3:]):
            queue.put(value)
        await tasks.start(queue.run)
        await chronicle.until(4)
        assert chronicle.ids == ids([*given[:2], *given[3:]])
        assert queue.dropped == 1
        tasks.cancel_scope.cancel()
    assert [record.message for record in caplog.records] == ["intent_refused"]


async def test_what_cannot_be_written_now_is_written_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with queue_on(tmp_path) as (queue, chronicle), anyio.create_task_group() as tasks:
        chronicle.fails = 3
        for call in calls(2):
            queue.put(call)
        await tasks.start(queue.run)
        await chronicle.until(2)
        assert chronicle.ids == ids(calls(2))
        tasks.cancel_scope.cancel()
    assert [record.message for record in caplog.records] == ["intents_not_recorded"] * 3


async def test_too_many_that_cannot_be_written_are_dropped_oldest_first(tmp_path: Path) -> None:
    async with queue_on(tmp_path) as (queue, chronicle), anyio.create_task_group() as tasks:
        chronicle.opened, chronicle.fails = anyio.Event(), 1
        given = calls(MAX_WAITING + 100)
        for value in given[:MAX_WAITING]:
            queue.put(value)
        await tasks.start(queue.run)
        with anyio.fail_after(WAIT_S):
            await chronicle.asked.wait()
        for value in given[MAX_WAITING:]:
            queue.put(value)
        chronicle.opened.set()
        await chronicle.until(MAX_WAITING)
        assert chronicle.ids == ids(given[100:])
        assert queue.dropped == 100
        tasks.cancel_scope.cancel()


async def test_an_error_that_no_store_foresaw_loses_nothing(tmp_path: Path) -> None:
    async with queue_on(tmp_path) as (queue, chronicle), anyio.create_task_group() as tasks:
        chronicle.errors = [OSError("no descriptor is left") for _ in range(4)]
        given = calls(3)
        for value in given:
            queue.put(value)
        tasks.start_soon(partial(keep_running, "intents", queue.run, pause_s=0))
        await chronicle.until(3)
        assert chronicle.ids == ids(given)
        assert chronicle.errors == []
        tasks.cancel_scope.cancel()
