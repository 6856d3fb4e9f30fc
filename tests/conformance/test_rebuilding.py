"""What is derived from items is made anew, and notes are dropped, on both engines."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from memory.items.scope import WORKSPACE_OWNER, Scope
from memory.notes.folder import NoteFile
from memory.notes.store import IndexedNote, SqlNoteStore
from memory.service.rebuilding import rebuild, redeliver
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.items import SqlItemStore, put_item_blocking
from memory.vectors.protocol import IndexState
from memory.vectors.state import SqlIndexState, deliver_vectors_again
from tests.conformance.suites.item_values import ANN, AT, item
from tests.support.episodes import open_memory_in, recorder_on
from tests.support.postgres import empty_schema_blocking


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlDatabase]:
    if request.param == "sqlite":
        async with open_memory_in(tmp_path) as opened:
            yield opened
    else:
        with empty_schema_blocking("memory") as schema:
            async with open_memory_in(schema) as opened:
                yield opened


async def put(database: SqlDatabase, count: int) -> None:
    def work(writer: Connection) -> None:
        for n in range(count):
            put_item_blocking(writer, item(f"{n}", f"payroll 工资 {n}"))

    await database.write(work)


async def waiting(database: SqlDatabase, backend: str) -> Sequence[str]:
    sql = "SELECT item_id FROM outbox WHERE backend = ? AND status = 'pending' ORDER BY id"
    return [row["item_id"] for row in await database.rows(sql, (backend,))]


async def test_a_rebuilt_index_finds_all_items_and_has_the_vectors_made_anew(
    database: SqlDatabase,
) -> None:
    await put(database, 120)
    await database.execute("DELETE FROM item_words")
    states = SqlIndexState(database)
    await states.put(IndexState(model_id="m", dimension=3, built_to=9, complete=True))
    assert await rebuild(database) == 120
    assert len(await SqlItemStore(database).search("工资", ANN, limit=200)) == 120
    assert await states.get() == IndexState(model_id="", dimension=3)


async def test_items_are_delivered_again_to_a_backend_that_may_have_lost_them(
    database: SqlDatabase,
) -> None:
    await put(database, 3)
    assert await redeliver(database, "memu", lambda: AT) == 3
    assert await redeliver(database, "memu", lambda: AT) == 3
    assert await waiting(database, "memu") == ["epi_0", "epi_1", "epi_2"]


async def test_vectors_are_delivered_again_but_for_what_waits_or_is_gone(
    database: SqlDatabase,
) -> None:
    await put(database, 3)
    asked = ["epi_2", "epi_0", "epi_none"]
    assert await deliver_vectors_again(database, lambda: AT, ["epi_0"]) == 1
    assert await deliver_vectors_again(database, lambda: AT, asked) == 1
    assert await waiting(database, "vectors") == ["epi_0", "epi_2"]


@pytest.mark.parametrize("of_users", [True, False])
async def test_notes_are_dropped_of_all_users_or_of_the_workspace(
    database: SqlDatabase, *, of_users: bool
) -> None:
    shared, anns = (
        SqlNoteStore(
            database,
            deliver_to=["vectors"],
            recording=recorder_on(database).recording,
            now=lambda: AT,
            owner_id=owner_id,
        )
        for owner_id in (WORKSPACE_OWNER, "ann")
    )
    note = IndexedNote(file=NoteFile("memory/ops.md", 1, 10), digest="d")
    await shared.put(note, [item("shared", scope=Scope(owner_id=WORKSPACE_OWNER))])
    await anns.put(note, [item("ann")])
    await shared.drop_all(of_users=of_users)
    assert [bool(await store.indexed()) for store in (shared, anns)] == [of_users, not of_users]
    left = [row["id"] for row in await database.rows("SELECT id FROM items")]
    assert left == ["epi_shared" if of_users else "epi_ann"]
