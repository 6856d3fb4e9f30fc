"""Which turns are noted for the record, and what they are by then."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.conversations.model import ConversationChange, Turn
from gateway.conversations.sqlite.record_queue import SqliteRecordQueue
from gateway.conversations.store import QueuedChange
from gateway.ids import ConversationId
from memory.clock import rfc3339
from memory.record.turn_item import RecordedTurn
from memory.stores.sqlite.database import open_database
from tests.conformance.suites.conversation_values import AT, Stores, conversation, ended, turn
from tests.support.stores import FILE, MIGRATIONS, open_file, stores_on

RESULT = {"reply": "Fine.", "outcome": "answered", "memory": {"injected": [{"id": "not_1"}]}}


async def said(stores: Stores, name: str, of: str = "a", **fields: Any) -> Turn:
    """Complete a turn with a message."""
    accepted = await stores.turns.accept(turn(name, of))
    done = ended(accepted, **{"result": RESULT, **fields})
    await stores.turns.finish([done], [])
    return done


async def taken(queue: SqliteRecordQueue) -> dict[str, RecordedTurn | None]:
    """Return and drop all changes, by turn."""
    changes: Sequence[QueuedChange] = await queue.newest(limit=99)
    await queue.done(changes)
    return {queued.change.turn_id: queued.change.turn for queued in changes}


async def test_a_turn_is_noted_when_it_ends_changes_or_goes(tmp_path: Path) -> None:
    async with open_file(tmp_path) as database:
        stores, queue = stores_on(database), SqliteRecordQueue(database)
        await stores.conversations.create(conversation(title="T", project_id="p"))
        await stores.turns.accept(turn("waiting"))
        first = await said(stores, "a1")
        recorded = RecordedTurn(
            turn_id=first.id,
            conversation_id=first.conversation_id,
            owner_id="ann",
            title="T",
            position=2,
            occurred_at=AT,
            message="message of a1",
            reply="Fine.",
            recalled_ids=["not_1"],
            labels={"project_id": "p"},
        )
        assert await taken(queue) == {first.id: recorded}
        await stores.conversations.change(first.conversation_id, ConversationChange(title="T"))
        assert await taken(queue) == {}
        await stores.conversations.change(first.conversation_id, ConversationChange(title="U"))
        (changed,) = (await taken(queue)).values()
        assert changed is not None
        assert changed.title == "U"
        await stores.conversations.delete(first.conversation_id, AT)
        (gone,) = await queue.newest(only_deleted=True, limit=9)
        assert (gone.change.turn_id, gone.change.turn, gone.change.is_deleted) == (first.id, None, True)  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {"result": {"reply": "no memory"}},
        {"result": {**RESULT, "outcome": "engine_failed"}},
        {"started_at": None},
    ],
    ids=["damaged", "failed", "never ran"],
)
async def test_the_gateways_own_words_and_damaged_rows_are_not_taken(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    async with open_file(tmp_path) as database:
        stores, queue = stores_on(database), SqliteRecordQueue(database)
        await stores.conversations.create(conversation())
        await said(stores, "a1", **fields)
        await said(stores, "a2")
        found = await taken(queue)
        assert found["trn_a1"] is None or found["trn_a1"].reply == ""
        assert found["trn_a2"] is not None


_COLUMNS = "(id, user_id, created_at, last_activity_at, root_id)"
_TURN = "(id, conversation_id, user_id, seq, state, message, created_at, started_at)"
OLDER = (
    f"INSERT INTO conversations {_COLUMNS} VALUES (:conversation, 'ann', :at, :at, :root)",
    f"INSERT INTO turns {_TURN} VALUES (:turn, :conversation, 'ann', 1, 'completed', 'm', :at, :at)",
)


async def test_the_copies_that_an_older_server_made_are_known_as_copies(tmp_path: Path) -> None:
    older = await open_database(tmp_path / FILE, MIGRATIONS[:4])

    def fill(writer: sqlite3.Connection) -> None:
        for name, root in [("a", None), ("fork", "cnv_a"), ("other", "cnv_x")]:
            values = {"conversation": f"cnv_{name}", "turn": f"trn_{name}", "root": root}
            for sql in OLDER:
                writer.execute(sql, values | {"at": rfc3339(AT)})

    await older.write(fill)
    await older.close()
    async with open_file(tmp_path) as database:
        await stores_on(database).turns.copy_history(
            ConversationId("cnv_fork"), 1, conversation("again")
        )
        rows = await database.rows("SELECT conversation_id, copy_of FROM turns")
        assert {row["conversation_id"]: row["copy_of"] for row in rows} == {
            "cnv_a": None,
            "cnv_fork": "trn_a",
            "cnv_other": None,
            "cnv_again": "trn_a",
        }
