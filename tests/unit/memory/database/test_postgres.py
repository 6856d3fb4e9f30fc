"""A database of PostgreSQL: migrations, transactions that rivals contradict, lost connections, values."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from traceback import format_exception
from typing import Any

import anyio
import anyio.to_thread
import psycopg
import pytest

from memory.errors import StoreConflict, StoreUnavailable
from memory.stores.postgres.connections import Driver, connect_blocking
from memory.stores.postgres.database import InUse, PostgresDatabase, open_postgres
from memory.stores.postgres.translation import translated
from tests.support.episodes import POSTGRES_MIGRATIONS as MEMORY_MIGRATIONS
from tests.support.episodes import open_memory
from tests.support.postgres import (
    new_schema_blocking,
    open_schema,
    restart_blocking,
    server_url,
)
from tests.support.stores import POSTGRES_MIGRATIONS, open_file

STEPS = ["CREATE TABLE words (word TEXT PRIMARY KEY, count BIGINT NOT NULL DEFAULT 0)"]
ENDED_BY_SERVER = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'candor'"
)
ENDED_AND_GONE = ENDED_BY_SERVER.replace("(pid)", "(pid, 10000)")
"""The same, and waits for their end, at most so many milliseconds."""
SQL = {"conversations": POSTGRES_MIGRATIONS, "memory": MEMORY_MIGRATIONS}
INDEXES = ("search_words", "search_texts", "item_words")
"""What finds texts is each engine's own."""


@pytest.fixture
def schema() -> Iterator[str]:
    with new_schema_blocking() as name:
        yield name


def on_server_blocking(statement: str) -> list[Any]:
    with psycopg.connect(server_url(), autocommit=True) as connection:
        return connection.execute(statement).fetchall()


async def count_words(database: PostgresDatabase) -> int:
    return int(await database.scalar("SELECT count(*) FROM words"))


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


async def test_statements_that_are_longer_than_what_a_connection_holds_leave_whole(
    schema: str,
) -> None:
    """The driver would wait for their results, and the server for their end."""
    words = [(letter * 3_000_000, 1) for letter in "ab"]

    def write(writer: Any) -> int:
        first = writer.execute("INSERT INTO words VALUES (?, ?)", ("c" * 3_000_000, 1))
        writer.executemany("INSERT INTO words VALUES (?, ?)", words)
        return int(first.rowcount)

    async with open_schema(schema, ["CREATE TABLE words (word TEXT, count INTEGER)"]) as database:
        assert await database.write(write) == 1
        assert await count_words(database) == 3


async def test_statements_that_were_prepared_before_a_column_was_added_are_prepared_again(
    schema: str,
) -> None:
    """The server refuses their plans: they would return another row."""

    def all_words(reader: Any) -> list[Any]:
        return [list(row) for row in reader.execute("SELECT * FROM words").fetchall()]

    async with open_schema(schema, STEPS) as database:
        await database.write(lambda writer: writer.execute("INSERT INTO words VALUES ('a', 1)"))
        for _ in range(10):  # the driver prepares what is repeated
            assert await database.write(all_words) == [["a", 1]]
            assert await database.read(all_words) == [["a", 1]]
        added = [*STEPS, "-- expand\nALTER TABLE words ADD COLUMN later TEXT"]
        async with open_schema(schema, added):
            pass
        assert await database.read(all_words) == [["a", 1, None]]
        assert await database.write(all_words) == [["a", 1, None]]


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


async def test_a_function_that_a_rival_contradicts_is_run_again(schema: str) -> None:
    """Both read before either has written, and each writes what the other read."""
    meeting = threading.Barrier(2)
    runs: list[str] = []

    def add_one(word: str, writer: Any) -> None:
        (total,) = writer.execute("SELECT count(*) FROM words").fetchone()
        runs.append(word)
        if len(runs) <= 2:
            meeting.wait(10)
        writer.execute("INSERT INTO words VALUES (?, ?)", (word, total + 1))

    async with (
        open_schema(schema, STEPS) as database,
        open_schema(schema, STEPS) as other,
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(database.write, partial(add_one, "a"))
            tasks.start_soon(other.write, partial(add_one, "b"))
        rows = await database.rows("SELECT count FROM words ORDER BY count")
        assert [row["count"] for row in rows] == [1, 2]
    assert len(runs) > 2


async def test_contradictions_without_end_are_unavailable(schema: str) -> None:
    runs: list[int] = []

    def contradicted(_: Any) -> None:
        runs.append(1)
        raise psycopg.errors.SerializationFailure

    async with open_schema(schema, STEPS) as database:
        with pytest.raises(StoreUnavailable):
            await database.write(contradicted)
        await database.execute("INSERT INTO words VALUES ('still')")
    assert 5 < len(runs) < 50


async def test_a_constraint_is_a_conflict_and_nothing_is_written(schema: str) -> None:
    def both(writer: Any) -> None:
        writer.execute("INSERT INTO words VALUES ('b')")
        writer.execute("INSERT INTO words VALUES ('a')")

    async with open_schema(schema, STEPS) as database:
        await database.execute("INSERT INTO words VALUES ('a')")
        with pytest.raises(StoreConflict):
            await database.write(both)
        assert await count_words(database) == 1


async def test_idle_connections_that_were_lost_are_replaced(schema: str) -> None:
    async with open_schema(schema, STEPS) as database:
        await database.execute("INSERT INTO words VALUES ('a')")
        assert await count_words(database) == 1
        await anyio.to_thread.run_sync(on_server_blocking, ENDED_BY_SERVER)
        await database.execute("INSERT INTO words VALUES ('b')")
        assert await count_words(database) == 2
        assert await database.ping() is None


async def test_a_connection_that_is_lost_in_a_transaction_is_unavailable(schema: str) -> None:
    def lost(writer: Any) -> None:
        writer.execute("INSERT INTO words VALUES ('a')")
        on_server_blocking(ENDED_BY_SERVER)
        writer.execute("INSERT INTO words VALUES ('b')")

    async with open_schema(schema, STEPS) as database:
        with pytest.raises(StoreUnavailable):
            await database.write(lost)
        assert await count_words(database) == 0


async def test_a_connection_that_is_lost_before_the_commit_is_replaced(schema: str) -> None:
    runs: list[int] = []

    def lost_once(writer: Any) -> None:
        runs.append(1)
        writer.execute("INSERT INTO words VALUES ('b')")
        if len(runs) == 1:
            on_server_blocking(ENDED_AND_GONE)

    async with open_schema(schema, STEPS) as database:
        await database.execute("INSERT INTO words VALUES ('a')")
        await database.write(lost_once)
        assert await count_words(database) == 2
    assert len(runs) == 2


async def test_a_commit_without_an_answer_is_not_tried_again(schema: str) -> None:
    """It may have been committed: who wrote must look."""
    runs: list[int] = []

    def lost(writer: Any) -> None:
        runs.append(1)
        writer.execute("INSERT INTO words VALUES ('b') RETURNING word").fetchall()
        on_server_blocking(ENDED_AND_GONE)

    async with open_schema(schema, STEPS) as database:
        await database.execute("INSERT INTO words VALUES ('a')")
        with pytest.raises(StoreUnavailable):
            await database.write(lost)
        assert await count_words(database) == 1
    assert len(runs) == 1


async def test_a_statement_is_sent_before_the_last_one_is_answered(schema: str) -> None:
    sent = threading.Event()

    def hold_blocking() -> None:
        with psycopg.connect(server_url()) as rival:
            rival.execute(f"INSERT INTO {schema}.words VALUES ('a')")
            held.set()
            assert sent.wait(10)
            rival.rollback()

    def write(writer: Any) -> None:
        writer.execute("INSERT INTO words VALUES ('a')")  # answered when the rival has ended
        writer.execute("INSERT INTO words VALUES ('b')")
        sent.set()

    async with open_schema(schema, STEPS) as database:
        held = threading.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, hold_blocking)
            await anyio.to_thread.run_sync(held.wait, 10)
            await database.write(write)
        assert await count_words(database) == 2


async def test_an_error_is_raised_though_nobody_looks_at_its_statement(schema: str) -> None:
    def twice(writer: Any) -> None:
        writer.execute("INSERT INTO words VALUES ('a')")
        writer.executemany("INSERT INTO words VALUES (?)", [("b",), ("a",)])
        writer.execute("SELECT count(*) FROM words").fetchone()

    async with open_schema(schema, STEPS) as database:
        with pytest.raises(StoreConflict):
            await database.write(twice)
        assert await count_words(database) == 0


async def test_a_function_that_raises_hides_an_error_of_a_statement_that_it_sent(
    schema: str, caplog: pytest.LogCaptureFixture
) -> None:
    def raise_behind(writer: Any) -> None:
        writer.execute("INSERT INTO words VALUES ('a'), ('a')")
        raise LookupError

    async with open_schema(schema, STEPS) as database:
        with pytest.raises(LookupError):
            await database.write(raise_behind)
        assert await count_words(database) == 0
    assert not caplog.records


async def test_a_statement_that_is_sent_tells_how_many_rows_it_changed(schema: str) -> None:
    async with open_schema(schema, STEPS) as database:
        await database.execute_many("INSERT INTO words VALUES (?)", [("a",), ("b",)])
        deleted = await database.write(lambda writer: writer.execute("DELETE FROM words").rowcount)
        assert deleted == 2


async def test_a_reading_that_is_cancelled_is_stopped_on_the_server(schema: str) -> None:
    running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"
    async with open_schema(schema, STEPS) as database:

        async def sleeping() -> int:
            rows = await anyio.to_thread.run_sync(on_server_blocking, running)
            return int(rows[0][0])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(database.rows, "SELECT pg_sleep(60)")
            with anyio.fail_after(20):
                while not await sleeping():  # noqa: ASYNC110  the server announces nothing
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        with anyio.fail_after(20):
            while await sleeping():  # noqa: ASYNC110
                await anyio.sleep(0.01)
        assert await count_words(database) == 0


async def test_texts_come_back_as_they_were_written(schema: str) -> None:
    texts = ["", "a\0b\0", "\U0010ffff", "\U0010ffff\0\U0010fffe", "'; --\\", "長🙂"]
    async with open_schema(schema, STEPS) as database:
        await database.execute_many(
            "INSERT INTO words (word) VALUES (?)", [(text,) for text in texts]
        )
        rows = await database.rows("SELECT word FROM words")
        assert sorted(row["word"] for row in rows) == sorted(texts)
        for text in texts:
            assert (
                await database.scalar("SELECT word FROM words WHERE word = :w", {"w": text}) == text
            )
        assert await database.rows("SELECT 1 FROM words WHERE word = ?", ("\ud800",)) == []
        with pytest.raises(UnicodeEncodeError):
            await database.execute("INSERT INTO words VALUES (?)", ("\ud800",))


def test_statements_are_translated_outside_of_texts_alone() -> None:
    said = (
        "SELECT 'a?:b%' || x::text FROM t INDEXED BY i WHERE a = ? AND +b = :name AND c % 2 = 0 + d"
    )
    expected = "SELECT 'a?:b%%' || x::text FROM t WHERE a = %s AND b = %(name)s AND c %% 2 = 0 + d"
    assert translated(said) == expected


async def test_json_is_taken_apart_also_with_a_nul_in_it(schema: str) -> None:
    result = r'{"reply":"\\u0000 \u0000","usage":{"input_tokens":7}}'
    async with open_schema(schema, STEPS) as database:
        asked = (
            "SELECT json_extract(?, '$.usage.input_tokens') AS n, json_extract(?, '$.reply') AS r"
        )
        row = await database.row(asked, (result, result))
        assert dict(row) == {"n": "7", "r": "\\u0000 \ufffd"}
        assert await database.scalar("SELECT json_extract(?, '$.a')", ("no json",)) is None


@pytest.mark.parametrize(
    ("pattern", "value", "matches"),
    [
        ("a.*.c", "a.b.c", True),
        ("a.*.c", "a.b.d", False),
        ("a?c", "abc", True),
        ("a[*]", "a*", True),
        ("a[*]", "ab", False),
        ("a[?][[]", "a?[", True),
        ("a%_\\\\", "a%_\\\\", True),
        ("a_%", "abc", False),
        ("A", "a", False),
    ],
)
async def test_both_engines_match_patterns_alike(
    schema: str, tmp_path: Path, pattern: str, value: str, *, matches: bool
) -> None:
    async with open_schema(schema, STEPS) as database, open_file(tmp_path) as file:
        for engine in (database, file):
            found = await engine.scalar("SELECT glob(?, ?)", (pattern, value))
            assert bool(found) is matches


async def test_reading_connections_write_nothing(schema: str) -> None:
    async with open_schema(schema, STEPS) as database:
        for statement in ("INSERT INTO words VALUES ('a')", "DELETE FROM words"):
            with pytest.raises(StoreUnavailable, match="read-only"):
                await database.rows(statement)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://zoe:hunter2@127.0.0.1:9/candor",
        "postgresql://zoe:hunter2@/candor?host=/nowhere",
        "postgresql://zoe:hunter2@127.0.0.1:9/candor?never=heard",
        "postgresql//zoe:hunter2@nowhere",
    ],
)
async def test_a_database_that_cannot_be_reached_is_told_without_its_address(url: str) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        await open_postgres(url, STEPS, schema="s")
    assert not any(part in str(caught.value) for part in ("zoe", "127", "nowhere", "heard"))
    assert "hunter2" not in "".join(format_exception(caught.value))


@pytest.mark.parametrize("part", ["host", "port", "user", "name"])
async def test_a_database_that_cannot_be_opened_is_told_with_all_that_may_be_wrong(
    part: str,
) -> None:
    """The driver does not say which, and the server's own words are in its language."""
    here = await anyio.to_thread.run_sync(server_url)
    urls = {
        "host": "postgresql://zoe@nowhere.invalid/candor",
        "port": "postgresql://zoe@127.0.0.1:9/candor",
        "user": here.replace("user=candor", "user=zoe"),
        "name": here.replace("/postgres?", "/missing?"),
    }
    with pytest.raises(StoreUnavailable) as caught:
        await open_postgres(urls[part], STEPS, schema="s")
    assert str(caught.value) == (
        "The database cannot be opened: it cannot be reached, or it refuses the user, the password "
        "or the database's name of the address; PostgreSQL's log says which."
    )


async def test_one_program_alone_opens_a_schema_for_its_sole_use(schema: str) -> None:
    async with sole(schema) as first:
        with pytest.raises(InUse):
            await open_postgres(server_url(), STEPS, schema=schema, use="alone")
        async with open_schema(schema, STEPS) as beside:  # a command beside the server
            await beside.execute("INSERT INTO words VALUES ('a')")
        await first.execute("INSERT INTO words VALUES ('b')")
    async with sole(schema) as second:
        assert await count_words(second) == 2


async def test_who_loses_its_lock_writes_again_when_no_other_has_taken_it(schema: str) -> None:
    async with sole(schema) as database:
        await anyio.to_thread.run_sync(on_server_blocking, ENDED_BY_SERVER)
        with connect_blocking(server_url(), schema) as rival:
            await taken_by(rival, schema)
            with anyio.fail_after(20):
                while await database.ping() is None:  # noqa: ASYNC110
                    await anyio.sleep(0.05)
            with pytest.raises(StoreUnavailable, match="another server"):
                await database.execute("INSERT INTO words VALUES ('a')")
            assert await count_words(database) == 0
        with anyio.fail_after(20):
            while await database.ping() is not None:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        await database.execute("INSERT INTO words VALUES ('a')")


@asynccontextmanager
async def sole(schema: str) -> AsyncIterator[PostgresDatabase]:
    url = await anyio.to_thread.run_sync(server_url)
    database = await open_postgres(url, STEPS, schema=schema, use="alone")
    try:
        yield database
    finally:
        await database.close()


async def taken_by(rival: Driver, schema: str) -> None:
    """Take the lock as soon as the server has noticed that its holder is gone."""
    take = "SELECT pg_advisory_lock(hashtextextended('sole use of ' || %s, 0))"
    await anyio.to_thread.run_sync(partial(rival.execute, take, (schema,)))


async def test_after_closing_nothing_is_read_or_written(schema: str) -> None:
    async with open_schema(schema, STEPS) as database:
        await count_words(database)
        await database.close()
        for work in (
            database.execute("SELECT 1"),
            database.rows("SELECT 1"),
            database.read(lambda reader: reader.execute("SELECT 1")),
        ):
            with pytest.raises(StoreUnavailable):
                await work
    left = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'candor'"
        " AND pid != pg_backend_pid()"
    )
    with connect_blocking(server_url(), schema) as connection, anyio.fail_after(30):
        while connection.execute(left).fetchall()[0][0]:  # noqa: ASYNC110  a server's process ends by itself
            await anyio.sleep(0.01)


async def test_what_was_written_survives_a_crash_of_the_server(schema: str) -> None:
    """The writer lives on, and takes for stored what it was told was stored."""
    async with open_schema(schema, STEPS) as database:
        await database.execute("INSERT INTO words (word) VALUES ('a')", is_synced=False)
        await anyio.to_thread.run_sync(restart_blocking, "QUIT")
    async with open_schema(schema, STEPS) as database:
        assert await count_words(database) == 1
