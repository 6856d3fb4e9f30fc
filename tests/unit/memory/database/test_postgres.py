"""Transactions on PostgreSQL: rivals that contradict them, lost connections, statements sent ahead."""

import errno
import random
import socket
import threading
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import psycopg
import pytest

from memory.errors import CommitUnknown, StoreConflict, StoreUnavailable
from memory.stores.postgres.database import open_postgres
from tests.support.child_programs import command, run_blocking, say
from tests.support.postgres import (
    open_schema,
    restart_blocking,
    server_url,
)
from tests.unit.memory.database.words_schema import (
    ENDED_BY_SERVER,
    STEPS,
    count_words,
    on_server_blocking,
)

ENDED_AND_GONE = ENDED_BY_SERVER.replace("(pid)", "(pid, 10000)")
"""The same, and waits for their end, at most so many milliseconds."""


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
        with pytest.raises(CommitUnknown):
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


async def test_a_reading_without_a_descriptor_left_is_unavailable(
    schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    async with open_schema(schema, STEPS) as database:
        with monkeypatch.context() as patched:
            patched.setattr(socket, "fromfd", refuse)
            with pytest.raises(StoreUnavailable, match="no more files"):
                await count_words(database)
        assert await count_words(database) == 0


async def read_and_leave(url: str, schema: str) -> None:
    """Cancel many readings while their rows come in."""
    many = "SELECT repeat('x', 200) AS text, n FROM generate_series(1, 40000) AS n"
    patience = random.Random(1)

    async def leave_again_and_again() -> None:
        for _ in range(60):
            with anyio.move_on_after(patience.uniform(0, 0.08)):
                await database.rows(many)

    database = await open_postgres(url, STEPS, schema=schema)
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(leave_again_and_again)
    say(words=await count_words(database))
    await database.close()


async def test_readings_that_are_cancelled_end_no_program(schema: str) -> None:
    """What one thread reads of a connection must not be freed by another."""
    words = command(read_and_leave, await anyio.to_thread.run_sync(server_url), schema)
    assert await anyio.to_thread.run_sync(run_blocking, words) == [{"words": 0}]


async def test_what_was_written_survives_a_crash_of_the_server(schema: str) -> None:
    """The writer lives on, and takes for stored what it was told was stored."""
    async with open_schema(schema, STEPS) as database:
        await database.execute("INSERT INTO words (word) VALUES ('a')", is_synced=False)
        await anyio.to_thread.run_sync(restart_blocking, "QUIT")
    async with open_schema(schema, STEPS) as database:
        assert await count_words(database) == 1
