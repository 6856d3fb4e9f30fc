"""Migrations on PostgreSQL: once, whole or not at all, and what programs of other versions bear."""

from pathlib import Path

import anyio
import pytest

from memory.errors import StoreUnavailable
from memory.stores.postgres.database import open_postgres
from tests.support.episodes import POSTGRES_MIGRATIONS as MEMORY_MIGRATIONS
from tests.support.episodes import open_memory
from tests.support.postgres import (
    open_schema,
    server_url,
)
from tests.support.stores import POSTGRES_MIGRATIONS, open_file
from tests.unit.memory.database.words_schema import STEPS, count_words

SQL = {"conversations": POSTGRES_MIGRATIONS, "memory": MEMORY_MIGRATIONS}


INDEXES = ("search_words", "search_texts", "item_words")
"""What finds texts is each engine's own."""


@pytest.mark.parametrize("part", ["conversations", "memory"])
async def test_both_engines_have_the_same_tables_and_columns(
    schema: str, tmp_path: Path, part: str
) -> None:
    opens = open_file if part == "conversations" else open_memory
    async with opens(tmp_path) as database:
        rows = await database.rows(
            "SELECT t.name AS tbl, c.name AS col FROM sqlite_schema t"
            " JOIN pragma_table_xinfo(t.name) c"
            " WHERE t.type IN ('table', 'view') AND t.name NOT LIKE 'sqlite_%'"
        )
        on_sqlite = {(row["tbl"], row["col"]) for row in rows}
    async with open_schema(schema, SQL[part]) as other:
        columns = await other.rows(
            "SELECT table_name AS tbl, column_name AS col FROM information_schema.columns"
            " WHERE table_schema = ? AND table_name != 'schema_version'",
            (schema,),
        )
        on_postgres = {(row["tbl"], row["col"]) for row in columns}
    of_both = {(table, name) for table, name in on_sqlite if not table.startswith(INDEXES)}
    assert len(of_both) > 100
    assert of_both <= on_postgres
    more = {(table, name) for table, name in on_postgres - of_both if not table.startswith(INDEXES)}
    assert {name for _, name in more} <= {"rowid"}  # each table of SQLite has it, unnamed


async def test_programs_that_start_at_once_migrate_once(schema: str) -> None:
    seen: list[int] = []
    steps = [*STEPS, "INSERT INTO words SELECT 'once' FROM pg_sleep(0.2)"]

    async def start() -> None:
        async with open_schema(schema, steps) as database:
            seen.append(await count_words(database))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(start)
    assert seen == [1, 1, 1, 1]


async def test_a_migration_that_fails_leaves_nothing(schema: str) -> None:
    with pytest.raises(StoreUnavailable):
        await open_postgres(
            server_url(), [*STEPS, "CREATE TABLE more (a TEXT); ERROR"], schema=schema
        )
    async with open_schema(schema, [*STEPS, "CREATE TABLE more (a TEXT)"]) as database:
        assert await count_words(database) == 0


async def test_a_database_of_a_newer_program_is_refused(schema: str) -> None:
    async with open_schema(schema, [*STEPS, "SELECT 1"]):
        pass
    with pytest.raises(StoreUnavailable, match="newer version"):
        await open_postgres(server_url(), STEPS, schema=schema)


async def test_a_program_goes_on_with_what_newer_ones_have_only_added(schema: str) -> None:
    added = [*STEPS, "-- expand\nALTER TABLE words ADD COLUMN later TEXT", "-- expand\nSELECT 1"]
    async with open_schema(schema, added):
        pass
    async with open_schema(schema, STEPS) as database:
        await database.write(lambda writer: writer.execute("INSERT INTO words VALUES ('a')"))
        assert await count_words(database) == 1
    async with open_schema(schema, [*added, "SELECT 1", "-- expand\nSELECT 1"]):
        pass
    with pytest.raises(StoreUnavailable, match="newer version"):
        await open_postgres(server_url(), STEPS, schema=schema)


async def test_what_earlier_programs_cannot_bear_is_done_when_none_uses_the_schema(
    schema: str,
) -> None:
    steps = [*STEPS, "-- contract\nALTER TABLE words RENAME TO terms"]
    use = await open_postgres(server_url(), STEPS, schema=schema, use="with_others")
    with pytest.raises(StoreUnavailable, match="stop all of them"):
        await open_postgres(server_url(), steps, schema=schema, use="with_others")
    assert await count_words(use) == 0
    await use.close()
    async with open_schema(schema, steps) as database:
        assert await database.scalar("SELECT count(*) FROM terms") == 0
    with pytest.raises(StoreUnavailable, match="newer version"):
        await open_postgres(server_url(), STEPS, schema=schema)


RELEASED = {"conversations": 7, "memory": 2}
"""How many migrations there were before their first lines were read; all of them add."""


@pytest.mark.parametrize("part", SQL)
def test_each_migration_says_whether_programs_that_do_not_know_it_go_on(part: str) -> None:
    for step in SQL[part][RELEASED[part] :]:
        assert step.startswith(("-- expand\n", "-- contract\n")), step[:80]
