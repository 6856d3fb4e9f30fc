"""Searches run beside everything else and stop when nobody waits for them."""

import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from memory.errors import StoreDamaged, StoreUnavailable
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.readers import Readers
from tests.support.episodes import open_memory

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


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_memory(tmp_path) as opened:
        yield opened


def one(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT 1").fetchone()[0])


async def in_time(event: threading.Event) -> None:
    assert await anyio.to_thread.run_sync(event.wait, 10)


async def run_and_cancel(readers: Readers, work: Endless) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(readers.run, work)
        await in_time(work.began)
        tasks.cancel_scope.cancel()
    await in_time(work.ended)


async def test_a_search_that_nobody_waits_for_stops_in_the_middle(database: Database) -> None:
    readers = Readers(database.path)
    work = Endless()
    with anyio.fail_after(30):
        await run_and_cancel(readers, work)
        assert "interrupted" in str(work.error)
        assert await readers.run(one) == 1
    readers.close()


async def test_a_slow_search_holds_up_no_other_read_or_write(database: Database) -> None:
    readers, work = Readers(database.path), Endless()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(readers.run, work)
            await in_time(work.began)
            assert (await database.rows("SELECT 1"))[0][0] == 1
            assert await readers.run(one) == 1
            await database.write(lambda writer: writer.execute("PRAGMA user_version"))
            assert not work.ended.is_set()
            tasks.cancel_scope.cancel()
        await in_time(work.ended)
    readers.close()


@pytest.mark.parametrize("broken", ["SELECT * FROM nothing", "SELEKT"])
async def test_an_error_leaves_the_connection_usable(database: Database, broken: str) -> None:
    readers = Readers(database.path)
    with pytest.raises(StoreUnavailable):
        await readers.run(lambda connection: connection.execute(broken))
    assert await readers.run(one) == 1
    readers.close()


async def test_once_closed_it_refuses(database: Database) -> None:
    readers = Readers(database.path)
    assert await readers.run(one) == 1
    readers.close()
    readers.close()
    with pytest.raises(StoreUnavailable):
        await readers.run(one)


async def test_a_search_that_runs_while_it_is_closed_ends_with_its_answer(
    database: Database,
) -> None:
    readers = Readers(database.path)
    began, go_on = threading.Event(), threading.Event()

    def work(connection: sqlite3.Connection) -> int:
        began.set()
        assert go_on.wait(10)
        return one(connection)

    answers: list[int] = []

    async def ask(asked: Callable[[sqlite3.Connection], int]) -> None:
        answers.append(await readers.run(asked))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, work)
        await in_time(began)
        readers.close()
        go_on.set()
    assert answers == [1]


async def test_what_is_damaged_is_told_to_whoever_keeps_the_file(database: Database) -> None:
    def meet(_: sqlite3.Connection) -> None:
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error

    readers = Readers(database.path, on_damage=database.note_damage)
    assert await database.ping() is None
    with pytest.raises(StoreDamaged):
        await readers.run(meet)
    told = await database.ping()
    assert told is not None
    assert told.startswith("The database cannot be read: it is damaged.")
    readers.close()
