"""The stored state of the vector index, on both engines."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.items import put_item_blocking
from memory.vectors.protocol import IndexState
from memory.vectors.state import SqlIndexState
from tests.conformance.suites.item_values import item
from tests.conformance.test_item_stores import POSTGRES_MIGRATIONS
from tests.support.episodes import open_memory
from tests.support.postgres import empty_schema_blocking, open_schema

STATE = IndexState(model_id="模型/multilingual-1", dimension=384, built_to=7)
ENQUEUED = (
    "INSERT INTO outbox (backend, operation, item_id, owner_id, revision, idempotency_key, status,"
    " due_at, created_at) VALUES (?, 'put', ?, 'ann', 1, ?, ?, '2026', '2026')"
)


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlDatabase]:
    if request.param == "sqlite":
        async with open_memory(tmp_path) as opened:
            yield opened
    else:
        with empty_schema_blocking("memory") as schema:
            async with open_schema(schema, POSTGRES_MIGRATIONS) as opened:
                yield opened


async def test_the_state_is_the_one_that_was_put_last(database: SqlDatabase) -> None:
    states = SqlIndexState(database)
    assert await states.get() is None
    await states.put(STATE)
    assert await states.get() == STATE
    other = IndexState(model_id="other", dimension=3, built_to=9, complete=True)
    await states.put(other)
    assert await states.get() == other


async def test_a_complete_index_has_the_items_but_for_those_that_wait(
    database: SqlDatabase,
) -> None:
    def work(writer: Connection) -> None:
        for name in ("1", "2", "3"):
            put_item_blocking(writer, item(name))
        waiting = [("vectors", "1", "a", "pending"), ("vectors", "2", "b", "delivered")]
        writer.executemany(ENQUEUED, [*waiting, ("memu", "3", "c", "pending")])

    await database.write(work)
    states = SqlIndexState(database)
    assert await states.expected_count("vectors") == 2


async def test_a_removed_index_is_forgotten_with_what_waits_for_it(database: SqlDatabase) -> None:
    states = SqlIndexState(database)
    await states.remove()
    await states.put(STATE)
    await database.execute(ENQUEUED, ("vectors", "1", "a", "pending"))
    await database.execute(ENQUEUED, ("memu", "1", "b", "pending"))
    await states.remove()
    assert await states.get() is None
    backends = await database.rows("SELECT backend FROM outbox")
    assert [row["backend"] for row in backends] == ["memu"]
