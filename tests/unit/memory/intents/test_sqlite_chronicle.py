"""What of the chronicle in SQLite only its tables show."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from memory.errors import StoreConflict
from memory.intents.chronicle import SqlChronicle, mark_remembered_blocking
from memory.stores.sqlite.database import Database
from tests.conformance.suites.chronicle import AT, ended, recording, waiting


async def test_what_went_into_a_prompt_leaves_the_turn_and_no_words(database: Database) -> None:
    chronicle = SqlChronicle(database)
    await chronicle.record([waiting("1"), waiting("2")])
    await chronicle.consumed(["int_1"], "trn_7")
    await chronicle.consumed(["int_1"], "trn_8")
    rows = await database.rows("SELECT intent_id, text, consumed_by FROM pending_context")
    assert {tuple(row) for row in rows} == {
        ("int_1", "", "trn_7"),
        ("int_2", "context of 2", None),
    }
    await chronicle.delete_conversation_context("cnv_1")
    assert await database.rows("SELECT * FROM pending_context") == []


async def test_the_first_mark_of_a_turn_stays(database: Database) -> None:
    await SqlChronicle(database).record([ended("1")])
    for minutes in range(2):
        now = AT + timedelta(minutes=minutes)
        await database.write(partial(mark_remembered_blocking, turn_id="trn_1", now=now))
    (row,) = await database.rows("SELECT remembered_at FROM ended_turns")
    assert row["remembered_at"] == "2026-11-20T12:00:00.000Z"


@pytest.mark.parametrize("talk_waits", [True, False])
async def test_a_turn_of_talk_alone_waits_only_for_a_model_that_learns(
    database: Database, *, talk_waits: bool
) -> None:
    chronicle = SqlChronicle(database, talk_waits=talk_waits)
    acted = replace(ended("acted"), turn_id="trn_acted", payload={"tool_calls": 1})
    told = replace(ended("told"), turn_id="trn_told", payload={"tool_calls": 0})
    call = replace(recording("call"), turn_id="trn_told", source_kind="tool")
    talk = replace(ended("talk"), turn_id="trn_talk", payload={"tool_calls": 0})
    for batch in ([acted], [call, told], [talk]):
        await chronicle.record(batch)
    waiting_turns = ["trn_acted", "trn_told", "trn_talk"]
    assert await chronicle.unremembered(9) == waiting_turns[: 3 if talk_waits else 2]


async def test_a_row_that_cannot_be_is_no_row_that_was_there(database: Database) -> None:
    """Only an id that was recorded is passed over; every other conflict is told."""
    broken = recording("1", owner_id=None)
    with pytest.raises(StoreConflict):
        await SqlChronicle(database).record([broken])
