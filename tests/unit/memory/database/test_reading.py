"""Long reads run beside everything else and stop when they are cancelled."""

import sqlite3
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from memory.errors import StoreUnavailable
from memory.stores.sqlite.connections import MAX_READERS, ReaderPool
from memory.stores.sqlite.database import Database
from tests.unit.memory.database.words_file import TABLE, WAIT_S, opened

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
    tmp_path: Path,
) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    with anyio.fail_after(WAIT_S):
        for _ in range(2 * MAX_READERS):
            work = Endless()
            await run_and_cancel(database, work)
            assert "interrupted" in str(work.error)
        assert await database.read(one) == 1
    await database.close()


async def test_a_slow_read_holds_up_no_other_read_or_write(tmp_path: Path) -> None:
    database, work = await opened(tmp_path / "d", [TABLE]), Endless()
    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(database.read, work)
            await in_time(work.began)
            assert (await database.rows("SELECT 1"))[0][0] == 1
            assert await database.read(one) == 1
            await database.write(lambda writer: writer.execute("PRAGMA user_version"))
            assert not work.ended.is_set()
            tasks.cancel_scope.cancel()
        await in_time(work.ended)
    await database.close()


async def test_all_statements_of_a_read_see_one_state(tmp_path: Path) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    counted, go_on = threading.Event(), threading.Event()

    def count_twice(connection: sqlite3.Connection) -> list[int]:
        counts = [connection.execute("SELECT count(*) FROM words").fetchone()[0]]
        counted.set()
        assert go_on.wait(WAIT_S)
        return [*counts, connection.execute("SELECT count(*) FROM words").fetchone()[0]]

    counts: list[int] = []

    async def read() -> None:
        counts.extend(await database.read(count_twice))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await in_time(counted)
        await database.write(lambda writer: writer.execute("INSERT INTO words VALUES ('a')"))
        go_on.set()
    assert counts == [0, 0]
    await database.close()


@pytest.mark.parametrize("broken", ["SELECT * FROM nothing", "SELEKT", "DELETE FROM words"])
async def test_an_error_leaves_the_connection_usable(tmp_path: Path, broken: str) -> None:
    database = await opened(tmp_path / "d", [TABLE])
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
    began, go_on = threading.Event(), threading.Event()

    def work(connection: sqlite3.Connection) -> int:
        began.set()
        assert go_on.wait(WAIT_S)
        return one(connection)

    answers: list[int] = []

    async def ask() -> None:
        answers.append(await pool.run(work))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await in_time(began)
        pool.close()
        go_on.set()
    assert answers == [1]
