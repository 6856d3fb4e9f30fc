"""Transactions, reads and closing on one database file."""

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from anyio.abc import TaskStatus

from memory.errors import StoreConflict, StoreUnavailable
from memory.stores.sqlite.connections import MAX_READERS, ReaderPool
from memory.stores.sqlite.database import Database
from tests.unit.memory.database.words_file import (
    WAIT_S,
    insert,
    peek,
    threads_left,
    words_of,
)

COUNT = "SELECT count(*) FROM words"


class Paused:
    """Work that says `first`, waits until it is let go, and says `then`."""

    def __init__(self, first: str = "SELECT 1", then: str = "SELECT 1") -> None:
        self._first, self._then = first, then
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, connection: sqlite3.Connection) -> list[Any]:
        found = connection.execute(self._first).fetchall()
        self.begun.set()
        assert self.go_on.wait(WAIT_S)
        return [row[0] for row in (*found, *connection.execute(self._then).fetchall())]


# --- writing


async def test_a_transaction_that_raises_writes_nothing(database: Database) -> None:

    def work(writer: sqlite3.Connection) -> None:
        writer.execute("INSERT INTO words VALUES ('half')")
        raise LookupError("mine")

    with pytest.raises(LookupError):
        await database.write(work)
    with pytest.raises(StoreConflict):
        await insert(database, "a", "a")
    with pytest.raises(StoreUnavailable):
        await database.write(lambda writer: writer.execute("INSERT INTO nowhere VALUES (1)"))
    with pytest.raises(UnicodeEncodeError):
        await insert(database, "fine", "\ud800")
    assert await words_of(database) == []
    await insert(database, "whole")
    assert await words_of(database) == ["whole"]


async def test_transactions_run_one_after_another_in_the_order_of_their_calls(
    database: Database,
) -> None:

    async def write(word: str) -> None:
        await insert(database, f"{word}x", f"{word}y")

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            for n in range(10):
                tasks.start_soon(write, str(n))
    assert await words_of(database) == [f"{n}{part}" for n in range(10) for part in "xy"]


async def test_a_cancelled_write_that_has_begun_is_finished_and_one_that_waits_never_begins(
    database: Database,
) -> None:
    slow = Paused("INSERT INTO words VALUES ('a')", "INSERT INTO words VALUES ('b')")
    scopes, finished = [anyio.CancelScope(), anyio.CancelScope()], list[list[Any]]()

    async def first() -> None:
        with scopes[0]:
            finished.append(await database.write(slow))

    async def second() -> None:
        with scopes[1]:
            await insert(database, "second")

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first)
            await in_time(slow.begun)
            tasks.start_soon(second)
            for scope in (None, *scopes):
                if scope is not None:
                    scope.cancel()
                await anyio.wait_all_tasks_blocked()
            slow.go_on.set()
    assert await words_of(database) == ["a", "b"]
    assert finished == [[]]


async def test_a_write_whose_task_is_cancelled_from_outside_of_anyio_has_ended_when_it_returns(
    database: Database,
) -> None:
    slow, has_ended = Paused(then="INSERT INTO words VALUES ('a')"), list[bool]()

    async def write(*, task_status: TaskStatus[Any]) -> None:
        task_status.started(asyncio.current_task())
        try:
            await database.write(slow)
        except asyncio.CancelledError:
            has_ended.append(slow.go_on.is_set())

    async with anyio.create_task_group() as tasks:
        task = await tasks.start(write)
        await in_time(slow.begun)
        task.cancel()
        await anyio.wait_all_tasks_blocked()
        slow.go_on.set()
    assert has_ended == [True]
    assert await words_of(database) == ["a"]


# --- reading beside writing


async def test_a_commit_is_seen_by_the_next_read_and_nothing_before_it(
    tmp_path: Path, database: Database
) -> None:
    for n in range(50):
        await insert(database, str(n))
        assert len(await words_of(database)) == n + 1

    def work(writer: sqlite3.Connection) -> None:
        writer.execute("DELETE FROM words")
        seen = peek(tmp_path / "d", COUNT)
        assert seen == [(50,)], "a transaction was seen before its end"

    await database.write(work)
    assert await words_of(database) == []


async def test_a_slow_read_holds_up_no_other_read_or_write(database: Database) -> None:
    work, go_on = Endless(), threading.Event()
    await database._reader.create_function(  # noqa: SLF001  reads at its pace
        "dawdle", 0, lambda: int(go_on.wait(WAIT_S))
    )
    found: list[int] = []

    async def read() -> None:
        row = await database.row("SELECT dawdle() AS waited, (SELECT count(*) FROM words) AS n")
        assert row is not None
        found.append(row["waited"])

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(database.read, work)
            await in_time(work.began)
            assert (await database.rows("SELECT 1"))[0][0] == 1
            assert await database.read(one) == 1
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            for n in range(20):
                await insert(database, str(n))
            assert not work.ended.is_set()
            assert found == []
            go_on.set()
            while not found:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        await in_time(work.ended)
    assert found == [1], "the read was still going on while all was written"
    assert len(await words_of(database)) == 20


async def test_a_cancelled_read_leaves_the_reader_usable(database: Database) -> None:
    await insert(database, "a")
    with anyio.move_on_after(0):
        await words_of(database)
    assert await words_of(database) == ["a"]


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"


class Endless:
    """Work that never ends by itself, and tells when it began and why it ended."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.ended = threading.Event()
        self.error: sqlite3.Error | None = None

    def __call__(self, connection: sqlite3.Connection) -> None:
        self.began.set()
        try:
            connection.execute(ENDLESS).fetchall()
        except sqlite3.Error as exc:
            self.error = exc
            raise
        finally:
            self.ended.set()


def one(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT 1").fetchone()[0])


async def in_time(event: threading.Event) -> None:
    assert await anyio.to_thread.run_sync(event.wait, WAIT_S)


async def run_and_cancel(database: Database, work: Endless) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(database.read, work)
        await in_time(work.began)
        tasks.cancel_scope.cancel()
    await in_time(work.ended)


async def test_more_cancelled_reads_than_connections_are_stopped_in_the_middle(
    database: Database,
) -> None:
    with anyio.fail_after(WAIT_S):
        for _ in range(2 * MAX_READERS):
            work = Endless()
            await run_and_cancel(database, work)
            assert "interrupted" in str(work.error)
        assert await database.read(one) == 1


async def test_all_statements_of_a_read_see_one_state(database: Database) -> None:
    count_twice = Paused(COUNT, COUNT)
    counts: list[int] = []

    async def read() -> None:
        counts.extend(await database.read(count_twice))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await in_time(count_twice.begun)
        await database.write(lambda writer: writer.execute("INSERT INTO words VALUES ('a')"))
        count_twice.go_on.set()
    assert counts == [0, 0]


@pytest.mark.parametrize("broken", ["SELECT * FROM nothing", "SELEKT", "DELETE FROM words"])
async def test_an_error_leaves_the_connection_usable(database: Database, broken: str) -> None:
    with pytest.raises(StoreUnavailable):
        await database.read(lambda connection: connection.execute(broken))
    assert await database.read(one) == 1
    await database.close()
    with pytest.raises(StoreUnavailable):
        await database.read(one)


async def test_a_read_that_runs_while_the_pool_is_closed_ends_with_its_answer(
    tmp_path: Path,
) -> None:
    pool = ReaderPool(tmp_path / "d")
    work = Paused()
    answers: list[int] = []

    async def ask() -> None:
        answers.extend(await pool.run(work))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await in_time(work.begun)
        pool.close()
        work.go_on.set()
    assert answers == [1, 1]


async def test_close_finishes_the_write_in_progress_and_refuses_the_rest(
    tmp_path: Path, database: Database
) -> None:
    slow = Paused(then="INSERT INTO words VALUES ('in time')")
    refused: list[str] = []

    async def late() -> None:
        try:
            await insert(database, "late")
        except StoreUnavailable as exc:
            refused.append(str(exc))

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(database.write, slow)
            await in_time(slow.begun)
            tasks.start_soon(database.close)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(late)
            tasks.start_soon(database.close)
            await anyio.wait_all_tasks_blocked()
            assert await words_of(database) == []
            slow.go_on.set()
        await database.close()
        for call in (words_of(database), insert(database, "x")):
            with pytest.raises(StoreUnavailable):
                await call
        assert await database.ping() == "The database is closed."
    assert refused == ["The database is closed."]
    assert peek(tmp_path / "d", "SELECT word FROM words") == [("in time",)]
    assert [path.name for path in tmp_path.iterdir()] == ["d"], "nothing is left beside the file"


async def test_closing_is_not_cut_short(database: Database) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await database.close()
    assert await threads_left() == []
    with pytest.raises(StoreUnavailable):
        await words_of(database)
