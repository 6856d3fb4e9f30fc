"""The record's worker: how often it looks at what changed, and what keeps two of them apart."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.lowlevel

from gateway.conversations.duty import Duty
from gateway.conversations.leases import Node
from gateway.conversations.sql.duties import DutyStore
from gateway.conversations.sql.leases import LeaseStore
from gateway.conversations.store import QueuedChange
from gateway.ids import NodeId
from gateway.turns.record import RecordWorker
from memory.record.index import RecordIndex, TurnChange
from tests.support.stores import open_file


class Changes:
    """A queue of changes, and the record that takes them over."""

    def __init__(self, count: int) -> None:
        self.waiting = [
            QueuedChange(seq=n, change=TurnChange(turn_id=f"trn_{n}", turn=None))
            for n in range(count)
        ]
        self.looks = 0
        self.taken: list[str] = []

    async def newest(self, *, limit: int, **_: Any) -> Sequence[QueuedChange]:
        self.looks += 1
        return self.waiting[-limit:]

    async def apply(self, changes: Sequence[TurnChange]) -> None:
        self.taken += [change.turn_id for change in changes]

    async def done(self, changes: Sequence[QueuedChange]) -> None:
        self.waiting = [change for change in self.waiting if change not in changes]


async def looks_for(count: int) -> int:
    changes = Changes(count)
    worker = RecordWorker(cast("Any", changes), cast("RecordIndex", changes), is_on=True)
    await worker.catch_up()
    assert len(changes.taken) == count
    return changes.looks


async def test_a_few_changes_take_one_look_and_many_as_many_as_hold_them() -> None:
    assert await looks_for(0) == await looks_for(1) == 1
    assert await looks_for(120) == 3


class Deleted(Changes):
    """A queue that two servers take from; the turn is deleted while one of them takes its text over."""

    def __init__(self) -> None:
        super().__init__(1)
        self.record: dict[str, str] = {}
        self.is_deleted = False
        self.reading, self.deleted = anyio.Event(), anyio.Event()

    async def apply(self, changes: Sequence[TurnChange]) -> None:
        is_deleted = self.is_deleted
        if not is_deleted:
            self.reading.set()
            await self.deleted.wait()
            await anyio.lowlevel.checkpoint()
        self.record = {} if is_deleted else {changes[0].turn_id: "text"}

    async def delete(self, by: RecordWorker) -> None:
        await self.reading.wait()
        self.is_deleted = True
        self.waiting.append(replace(self.waiting[0], seq=1))
        self.deleted.set()
        await by.catch_up()


async def test_what_another_server_deletes_meanwhile_does_not_come_back(tmp_path: Path) -> None:
    async with open_file(tmp_path) as database:
        changes, workers = Deleted(), []
        for name in ("here", "there"):
            node = Node(id=NodeId(name), incarnation=name)
            await LeaseStore(database).join(node, ttl_ms=3_600_000)
            duty = Duty(DutyStore(database), node, is_shared=True)
            given: Any = (changes, changes)
            workers.append(RecordWorker(*given, is_on=True, duties=duty))
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(workers[0].catch_up)
                await changes.delete(by=workers[1])
        assert changes.record == {}
        assert changes.waiting == []
