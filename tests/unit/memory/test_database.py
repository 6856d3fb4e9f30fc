# ruff: noqa: SLF001
# the two connections are what is tested

import sqlite3
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiosqlite
import anyio
import pytest

from gateway.conversations import migrations
from memory.errors import StoreConflict, StoreUnavailable
from memory.stores.sqlite import database as module
from memory.stores.sqlite.database import Database, migrations_of, open_database

TABLE = "CREATE TABLE words (word TEXT PRIMARY KEY) STRICT;"
GATEWAY = migrations_of(migrations.__name__)
WAIT_S = 30


LEFT: list[Database] = []


@pytest.fixture(autouse=True)
async def _close_what_a_failed_test_left() -> AsyncIterator[None]:
    """Its threads would keep the whole run from ending."""
    yield
    with anyio.move_on_after(WAIT_S):
        while LEFT:
            await LEFT.pop().close()


async def opened(path: Path, steps: Sequence[str]) -> Database:
    database = await open_database(path, steps)
    LEFT.append(database)
    return database


async def insert(database: Database, *words: str) -> None:
    def work(writer: sqlite3.Connection) -> None:
        for word in words:
            writer.execute("INSERT INTO words VALUES (?)", (word,))

    await database.write(work)


async def words_of(database: Database) -> list[str]:
    return [row["word"] for row in await database.rows("SELECT word FROM words ORDER BY rowid")]


def peek(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


COUNT = "SELECT count(*) FROM words"
SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"


async def test_what_is_committed_survives_a_power_cut_and_readers_never_wait(
    tmp_path: Path,
) -> None:
    """The pragmas that promise it; none of them can be seen to work in a test."""
    database = await opened(tmp_path / "d", [TABLE])
    said = {
        name: (await database.row(f"PRAGMA {name}") or [None])[0]
        for name in ("journal_mode", "query_only", "busy_timeout")
    }
    assert said == {"journal_mode": "wal", "query_only": 1, "busy_timeout": 5000}

    def work(writer: sqlite3.Connection) -> dict[str, Any]:
        return {
            name: writer.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "foreign_keys", "busy_timeout")
        }

    assert await database.write(work) == {
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 5000,
    }
    await database.close()


async def test_a_file_system_without_wal_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = aiosqlite.Connection.execute_fetchall

    async def execute_fetchall(self: aiosqlite.Connection, sql: str, *rest: Any) -> Any:
        return [("delete",)] if "journal_mode" in sql else await real(self, sql, *rest)

    monkeypatch.setattr(aiosqlite.Connection, "execute_fetchall", execute_fetchall)
    with pytest.raises(StoreUnavailable, match="WAL"):
        await opened(tmp_path / "d", [TABLE])


# --- migrations


async def test_a_fresh_file_equals_one_that_took_every_step(tmp_path: Path) -> None:
    steps = [
        *GATEWAY,
        "CREATE TABLE more (x)",
        "ALTER TABLE more ADD COLUMN y; CREATE INDEX i ON more (y)",
    ]
    for known in range(1, len(steps) + 1):
        await (await opened(tmp_path / "old", steps[:known])).close()
    await (await opened(tmp_path / "fresh", steps)).close()
    assert peek(tmp_path / "old", SCHEMA) == peek(tmp_path / "fresh", SCHEMA)
    for name in ("old", "fresh"):
        assert peek(tmp_path / name, "PRAGMA user_version") == [(len(steps),)]


async def test_a_file_of_a_newer_program_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "d"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE theirs (x); PRAGMA user_version=2")
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable, match="newer"):
        await opened(path, [TABLE])
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["d"]


@pytest.mark.parametrize(
    "broken",
    ["CREATE TABLE half (x); CREATE TABLE words (x);", "CREATE TABLE half (x); nonsense", "'"],
)
async def test_a_failing_migration_leaves_the_version_before_it(
    tmp_path: Path, broken: str
) -> None:
    path = tmp_path / "d"
    with pytest.raises(StoreUnavailable):
        await opened(path, [TABLE, broken])
    assert peek(path, "PRAGMA user_version") == [(1,)]
    assert [name for _, name, *_ in peek(path, SCHEMA)] == ["sqlite_autoindex_words_1", "words"]
    database = await opened(path, [TABLE, "CREATE TABLE half (x)"])
    await insert(database, "still works")
    await database.close()


async def test_a_semicolon_ends_a_statement_only_where_sql_says_so(tmp_path: Path) -> None:
    tricky = """
    -- a comment; with a semicolon, and an apostrophe's
    CREATE TABLE words (word TEXT PRIMARY KEY) STRICT; /* one; more */
    INSERT INTO words VALUES ('a;b'), ('-- not a comment'), ('it''s;');
    CREATE TRIGGER doubling AFTER INSERT ON words WHEN length(new.word) = 1 BEGIN
      INSERT INTO words VALUES (new.word || ';');
      INSERT INTO words VALUES (new.word || new.word);
    END;
    INSERT INTO words VALUES ('c') -- and no end"""
    database = await opened(tmp_path / "d", [tricky])
    assert await words_of(database) == ["a;b", "-- not a comment", "it's;", "c", "c;", "cc"]
    await database.close()


async def test_a_comment_that_never_ends_does_not_swallow_the_version(tmp_path: Path) -> None:
    await (await opened(tmp_path / "d", [f"{TABLE} /* to be continued"])).close()
    assert peek(tmp_path / "d", "PRAGMA user_version") == [(1,)]


def test_migrations_are_read_in_order_and_without_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "files", lambda _package: tmp_path)
    (tmp_path / "0002_b.sql").write_text("B", encoding="utf-8")
    (tmp_path / "0001_a.sql").write_text("A", encoding="utf-8")
    (tmp_path / "notes.md").write_text("C", encoding="utf-8")
    assert migrations_of("any") == ["A", "B"]
    (tmp_path / "0004_d.sql").write_text("D", encoding="utf-8")
    with pytest.raises(AssertionError):
        migrations_of("any")


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

    await database._reader.create_function("dawdle", 0, dawdle)
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


# --- its end


async def test_close_finishes_the_write_in_progress_and_refuses_the_rest(tmp_path: Path) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    begun, go_on = threading.Event(), threading.Event()
    refused: list[str] = []

    def slow(writer: sqlite3.Connection) -> None:
        begun.set()
        assert go_on.wait(WAIT_S)
        writer.execute("INSERT INTO words VALUES ('in time')")

    async def late() -> None:
        try:
            await insert(database, "late")
        except StoreUnavailable as exc:
            refused.append(str(exc))

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(database.write, slow)
            await anyio.to_thread.run_sync(begun.wait, WAIT_S)
            tasks.start_soon(database.close)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(late)
            tasks.start_soon(database.close)
            await anyio.wait_all_tasks_blocked()
            assert await words_of(database) == []
            go_on.set()
        await database.close()
        for call in (words_of(database), insert(database, "x")):
            with pytest.raises(StoreUnavailable):
                await call
        assert await database.ping() == "The database is closed."
    assert refused == ["The database is closed."]
    assert peek(tmp_path / "d", "SELECT word FROM words") == [("in time",)]
    assert [one.name for one in tmp_path.iterdir()] == ["d"], "nothing is left beside the file"


async def test_closing_is_not_cut_short(tmp_path: Path) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    threads = threading.active_count()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await database.close()
    for thread in threading.enumerate():
        if "_connection_worker_thread" in thread.name:
            await anyio.to_thread.run_sync(thread.join, WAIT_S)
    assert threading.active_count() < threads + 1
    with pytest.raises(StoreUnavailable):
        await words_of(database)


# --- bad luck


async def test_ping_is_silent_while_all_is_well_and_really_writes(tmp_path: Path) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    wal = tmp_path / "d-wal"
    before = wal.stat().st_size
    assert await database.ping() is None
    assert wal.stat().st_size > before
    assert peek(tmp_path / "d", "PRAGMA user_version") == [(1,)]
    await database.close()


async def test_a_file_that_another_process_holds_is_unavailable_and_comes_back(
    tmp_path: Path,
) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    await database._writer.execute("PRAGMA busy_timeout=0")
    other = sqlite3.connect(tmp_path / "d", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="another process"):
        await insert(database, "a")
    assert await database.ping() == ("The database cannot be written: another process holds it.")
    assert await words_of(database) == []
    other.execute("COMMIT")
    other.close()
    await insert(database, "a")
    await database.close()


@pytest.mark.parametrize("kind", ["garbage", "directory", "no parent", "torn"])
async def test_what_is_no_database_is_refused_in_words_without_a_path(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "secret place" / "d"
    if kind != "no parent":
        path.parent.mkdir()
    if kind == "garbage":
        path.write_bytes(b"this is no database, it is a letter to a friend" * 100)
    elif kind == "directory":
        path.mkdir()
    elif kind == "torn":
        await (await opened(path, GATEWAY)).close()
        path.write_bytes(path.read_bytes()[:5000] + b"\xff" * 3000)
    with pytest.raises(StoreUnavailable) as caught:
        await opened(path, [*GATEWAY, "CREATE TABLE x AS SELECT * FROM turns"])
    assert "secret" not in str(caught.value)
    assert "/" not in str(caught.value)
    assert str(caught.value).endswith(".")


async def test_a_file_that_is_damaged_while_it_is_open_is_told(tmp_path: Path) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    await insert(database, *[f"{n:0200}" for n in range(500)])
    await database.close()
    whole = (tmp_path / "d").read_bytes()
    (tmp_path / "d").write_bytes(whole[:4096] + b"\xaa" * (len(whole) - 4096))
    database = await opened(tmp_path / "d", [TABLE])
    with pytest.raises(StoreUnavailable, match="read: it is damaged"):
        await words_of(database)
    with pytest.raises(StoreUnavailable, match="written: it is damaged"):
        await insert(database, "x")
    await database.close()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (sqlite3.SQLITE_FULL, "the disk is full"),
        (sqlite3.SQLITE_IOERR_WRITE, "the disk failed or is full"),
        (sqlite3.SQLITE_READONLY_DIRECTORY, "it is read-only"),
        (sqlite3.SQLITE_CANTOPEN, "it cannot be opened"),
        (None, "it failed"),
    ],
)
async def test_errors_are_told_in_our_words(tmp_path: Path, code: int | None, reason: str) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    failure = sqlite3.OperationalError("cannot write /home/ann/secret.sqlite3")
    if code is not None:
        failure.sqlite_errorcode = code

    def work(_writer: sqlite3.Connection) -> None:
        raise failure

    with pytest.raises(StoreUnavailable) as caught:
        await database.write(work)
    assert str(caught.value) == f"The database cannot be written: {reason}."
    assert caught.value.__cause__ is failure
    await database.close()


async def test_opening_that_fails_leaves_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await opened(tmp_path / "d", [TABLE, "nonsense"])
    left = [one for one in threading.enumerate() if "_connection_worker" in one.name]
    for thread in left:
        await anyio.to_thread.run_sync(thread.join, WAIT_S)
    assert threading.active_count() <= before + 1, SimpleNamespace(left=left)


async def test_the_files_are_this_users_alone_and_what_is_deleted_is_zeroed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    database = await opened(tmp_path / "a.sqlite3", [TABLE])
    await insert(database, "Zitronella")
    for file in tmp_path.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file.name
    await database.write(lambda writer: writer.execute("DELETE FROM words"))
    await database.close()
    assert b"Zitronella" not in (tmp_path / "a.sqlite3").read_bytes()


async def test_a_place_where_no_file_can_be_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await opened(tmp_path / "none" / "a.sqlite3", [TABLE])
