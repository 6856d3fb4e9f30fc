"""The record's index: where the items of turns are made."""

import threading
from collections.abc import Sequence
from typing import Any, cast

import pytest

from memory.items.item import Item
from memory.record.index import RecordIndex, TurnChange
from memory.record.store import SqlRecordStore
from memory.record.turn_item import RecordedTurn
from tests.conformance.suites.item_values import AT


@pytest.mark.parametrize(("message", "on_loop"), [("kafka lag", True), ("kafka " * 2_000, False)])
async def test_only_the_items_of_short_turns_are_made_on_the_loop(
    *, message: str, on_loop: bool
) -> None:
    threads = set()
    written: list[Item] = []

    def watched(text: str) -> str:
        threads.add(threading.current_thread() is threading.main_thread())
        return text

    class Store:
        async def put(self, items: Sequence[Item], **_: Any) -> None:
            written.extend(items)

    index = RecordIndex(
        cast("SqlRecordStore", Store()), cast("Any", None), mask=watched, now=lambda: AT
    )
    turn = RecordedTurn(
        turn_id="trn_1",
        conversation_id="cnv_1",
        owner_id="ann",
        position=1,
        occurred_at=AT,
        message=message,
    )
    await index.apply([TurnChange(turn_id="trn_1", turn=turn)])
    assert [item.id for item in written] == ["trn_1"]
    assert threads == {on_loop}
