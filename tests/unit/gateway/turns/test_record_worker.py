"""The record's worker: how often it looks at what changed."""

from collections.abc import Sequence
from typing import Any, cast

from gateway.conversations.store import QueuedChange
from gateway.turns.record import RecordWorker
from memory.record.index import RecordIndex, TurnChange


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
