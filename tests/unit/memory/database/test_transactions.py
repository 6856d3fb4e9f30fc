"""Writes, one after another and whole, and reads beside them."""

import sqlite3
import threading
from pathlib import Path

import anyio
import pytest

from memory.errors import StoreConflict, StoreUnavailable
from tests.unit.memory.database.words_file import TABLE, WAIT_S, insert, opened, peek, words_of

COUNT = "SELECT count(*) FROM words"


# --- writing


async def test_a_transaction_that_raises_writes_nothing(tmp_path: Path) -> None:
    database = await opened(tmp_path / "d", [TABLE])

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
    await database.close()


async def test_transactions_run_one_after_another_in_the_order_of_their_calls(
    tmp_path: Path,
) -> None:
    database = await opened(tmp_path / "d", [TABLE])

    async def write(word: str) -> None:
        await insert(database, f"{word}x", f"{word}y")

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            for n in range(10):
                tasks.start_soon(write, str(n))
    assert await words_of(database) == [f"{n}{part}" for n in range(10) for part in "xy"]
    await database.close()


async def test_a_write_that_has_begun_is_finished_though_its_scope_is_cancelled(
    tmp_path: Path,
) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    begun, go_on = threading.Event(), threading.Event()
    finished: list[str] = []

    def slow(writer: sqlite3.Connection) -> str:
        writer.execute("INSERT INTO words VALUES ('a')")
        begun.set()
        assert go_on.wait(WAIT_S)
        writer.execute("INSERT INTO words VALUES ('b')")
        return "done"

    async def write(scope: anyio.CancelScope) -> None:
        with scope:
            finished.append(await database.write(slow))

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            scope = anyio.CancelScope()
            tasks.start_soon(write, scope)
            await anyio.to_thread.run_sync(begun.wait, WAIT_S)
            scope.cancel()
            await anyio.wait_all_tasks_blocked()
            go_on.set()
    assert await words_of(database) == ["a", "b"]
    assert finished == ["done"]
    await database.close()


async def test_a_cancelled_write_that_waits_for_its_turn_never_begins(tmp_path: Path) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    begun, go_on = threading.Event(), threading.Event()

    def slow(writer: sqlite3.Connection) -> None:
        begun.set()
        assert go_on.wait(WAIT_S)
        writer.execute("INSERT INTO words VALUES ('first')")

    async def second() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await insert(database, "second")

    scopes: list[anyio.CancelScope] = []
    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(database.write, slow)
            await anyio.to_thread.run_sync(begun.wait, WAIT_S)
            tasks.start_soon(second)
            await anyio.wait_all_tasks_blocked()
            scopes[0].cancel()
            await anyio.wait_all_tasks_blocked()
            go_on.set()
    assert await words_of(database) == ["first"]
    await database.close()


# --- reading beside writing


async def test_a_commit_is_seen_by_the_next_read_and_nothing_before_it(tmp_path: Path) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    for n in range(50):
        await insert(database, str(n))
        assert len(await words_of(database)) == n + 1

    def work(writer: sqlite3.Connection) -> None:
        writer.execute("DELETE FROM words")
        seen = peek(tmp_path / "d", COUNT)
        assert seen == [(50,)], "a transaction was seen before its end"

    await database.write(work)
    assert await words_of(database) == []
    await database.close()


async def test_a_long_read_keeps_no_write_waiting(tmp_path: Path) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    reading, go_on = threading.Event(), threading.Event()

    def dawdle() -> int:
        reading.set()
        return int(go_on.wait(WAIT_S))

    await database._reader.create_function("dawdle", 0, dawdle)  # noqa: SLF001  reads at its pace
    found: list[int] = []

    async def read() -> None:
        row = await database.row("SELECT dawdle() AS waited, (SELECT count(*) FROM words) AS n")
        assert row is not None
        found.extend([row["waited"], row["n"]])

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.to_thread.run_sync(reading.wait)
            for n in range(20):
                await insert(database, str(n))
            assert found == []
            go_on.set()
    assert found[0] == 1, "the read was still going on while all was written"
    assert len(await words_of(database)) == 20
    await database.close()


async def test_a_cancelled_read_leaves_the_reader_usable(tmp_path: Path) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    await insert(database, "a")
    with anyio.move_on_after(0):
        await words_of(database)
    assert await words_of(database) == ["a"]
    await database.close()


async def test_nothing_is_written_through_the_reader(tmp_path: Path) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    with pytest.raises(StoreUnavailable):
        await database.rows("INSERT INTO words VALUES ('x')")
    await database.close()
