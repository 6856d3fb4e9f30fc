"""Damaged and locked files, integrity checks, and migrations."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from gateway.conversations import migrations
from memory.errors import StoreDamaged, StoreUnavailable
from memory.stores.sqlite import database as module
from memory.stores.sqlite import integrity
from memory.stores.sqlite.database import Database, migrations_of
from memory.stores.sqlite.integrity import (
    check_blocking,
    check_integrity,
    holds_nothing_blocking,
)
from tests.unit.memory.database.words_file import TABLE, WAIT_S, insert, opened, peek, words_of


async def test_ping_is_silent_while_all_is_well_and_really_writes(
    tmp_path: Path, database: Database
) -> None:
    wal = tmp_path / "d-wal"
    before = wal.stat().st_size
    assert await database.ping() is None
    assert wal.stat().st_size > before
    assert peek(tmp_path / "d", "PRAGMA user_version") == [(1,)]


async def test_a_file_that_another_process_holds_is_unavailable_and_comes_back(
    tmp_path: Path, database: Database
) -> None:
    await database._writer.run(  # noqa: SLF001  else it waits for it
        lambda writer: writer.execute("PRAGMA busy_timeout=0")
    )
    other = sqlite3.connect(tmp_path / "d", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="another process"):
        await insert(database, "a")
    assert await database.ping() == ("The database cannot be written: another process holds it.")
    assert await words_of(database) == []
    other.execute("COMMIT")
    other.close()
    await insert(database, "a")


async def filled(file: Path) -> None:
    database = await opened(file, [TABLE])
    await insert(database, *[f"{n:0200}" for n in range(500)])
    await database.close()


async def test_a_file_that_is_damaged_while_it_is_open_is_told(tmp_path: Path) -> None:
    await filled(tmp_path / "d")
    whole = (tmp_path / "d").read_bytes()
    (tmp_path / "d").write_bytes(whole[:4096] + b"\xaa" * (len(whole) - 4096))
    database = await opened(tmp_path / "d", [TABLE])
    assert await database.ping() is None, "nobody has read there yet"
    with pytest.raises(StoreDamaged, match="read: it is damaged"):
        await words_of(database)
    told = await database.ping()
    assert told is not None
    assert told.startswith("The database cannot be read: it is damaged.")
    with pytest.raises(StoreDamaged, match="written: it is damaged"):
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
async def test_errors_are_told_in_our_words(
    database: Database, code: int | None, reason: str
) -> None:
    failure = sqlite3.OperationalError("cannot write /home/ann/secret.sqlite3")
    if code is not None:
        failure.sqlite_errorcode = code

    def work(_writer: sqlite3.Connection) -> None:
        raise failure

    with pytest.raises(StoreUnavailable) as caught:
        await database.write(work)
    assert str(caught.value) == f"The database cannot be written: {reason}."
    assert caught.value.__cause__ is failure


async def test_a_schema_that_is_not_text_is_damage(tmp_path: Path, database: Database) -> None:
    """SQLite quotes it in its message, which the driver then cannot decode."""
    await database.close()
    whole = (tmp_path / "d").read_bytes()
    (tmp_path / "d").write_bytes(whole.replace(b"tablewordswords", b"tablewor\xffsxords"))
    with pytest.raises(StoreDamaged, match="opened: it is damaged"):
        await opened(tmp_path / "d", [TABLE])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(x'ff' AS TEXT) AS word",
        "SELECT 'x' AS word",
        "SELECT letter FROM words",
        "SELECT * FROM letters",
    ],
    ids=["no text", "cannot be understood", "a column is gone", "a table is gone"],
)
async def test_a_row_that_cannot_be_read_is_damage(database: Database, sql: str) -> None:
    with pytest.raises(StoreDamaged):
        await database.values(lambda row: int(row["word"]), sql)
    assert await database.ping() is not None


def garble_pages(file: Path) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[:8192] + b"\xaa" * 4096 + whole[12288:])


def rename_a_column(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("ALTER TABLE words RENAME COLUMN word TO wor_")


async def checked(file: Path) -> str | None:
    """Open a file, run the check's first part, and return what `ping` says then."""
    database = await opened(file, [TABLE])
    async with anyio.create_task_group() as tasks:
        await tasks.start(
            lambda task_status: check_integrity(database, [TABLE], task_status=task_status)
        )
        told = await database.ping()
        tasks.cancel_scope.cancel()
    await database.close()
    return told


@pytest.mark.parametrize("damage", [garble_pages, rename_a_column])
async def test_damage_is_told_after_the_start(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    await filled(tmp_path / "d")
    assert await checked(tmp_path / "d") is None
    await anyio.to_thread.run_sync(damage, tmp_path / "d")
    told = await checked(tmp_path / "d")
    assert told is not None
    assert told.startswith("The database is damaged")


@pytest.mark.parametrize(
    ("damage", "lacks"),
    [
        ("DROP TABLE words", "the table words"),
        ("ALTER TABLE words RENAME COLUMN word TO wor_", "the column words.word"),
    ],
)
async def test_what_a_damaged_database_lacks_is_named(
    tmp_path: Path, damage: str, lacks: str
) -> None:
    await filled(tmp_path / "d")
    await anyio.to_thread.run_sync(peek, tmp_path / "d", damage)
    told = await checked(tmp_path / "d")
    assert told is not None
    assert told.startswith(f"The database is damaged: it lacks {lacks}. ")


async def test_a_start_does_not_wait_for_a_long_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check goes on meanwhile, and its result is told when it comes."""
    go_on = threading.Event()

    def slowly(*given: object) -> None:
        assert go_on.wait(WAIT_S)
        check_blocking(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(integrity, "check_blocking", slowly)
    await filled(tmp_path / "d")
    garble_pages(tmp_path / "d")
    database = await opened(tmp_path / "d", [TABLE])
    async with anyio.create_task_group() as tasks:
        await tasks.start(
            lambda task_status: check_integrity(
                database, [TABLE], start_s=0.01, task_status=task_status
            )
        )
        assert await database.ping() is None
        go_on.set()
        with anyio.fail_after(WAIT_S):
            while await database.ping() is None:  # noqa: ASYNC110
                await anyio.sleep(0.01)
    await database.close()


def test_a_check_that_is_given_up_stops(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "d")) as connection, connection:
        connection.executescript(
            f"{TABLE} WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)"
            " INSERT INTO words SELECT 'w' || i FROM n"
        )
    check_blocking(tmp_path / "d", [TABLE])
    given_up = threading.Event()
    given_up.set()
    with pytest.raises(StoreUnavailable):
        check_blocking(tmp_path / "d", [TABLE], given_up)


def test_which_file_holds_nothing(tmp_path: Path) -> None:
    file = tmp_path / "d"
    assert holds_nothing_blocking(file)
    file.touch()
    assert holds_nothing_blocking(file)
    peek(file, "PRAGMA journal_mode=WAL")
    assert file.stat().st_size > 0
    assert holds_nothing_blocking(file)
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(TABLE)
    assert not holds_nothing_blocking(file)
    file.write_bytes(b"no database " * 100)
    assert not holds_nothing_blocking(file)


GATEWAY = migrations_of(migrations.__name__)
SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"


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
    assert [entry.name for entry in tmp_path.iterdir()] == ["d"]


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


async def test_a_row_that_cannot_be_read_does_not_freeze_what_later_reads_see(
    database: Database,
) -> None:
    """The driver leaves its cursor open, which holds the state of that moment as long as the error lives."""
    await insert(database, "a", "b")
    await database.write(
        lambda writer: writer.execute(
            "UPDATE words SET word = CAST(x'ff' AS TEXT) WHERE word = 'b'"
        )
    )
    with pytest.raises(StoreDamaged) as held:
        await database.rows("SELECT word FROM words")
    await insert(database, "c")
    assert await database.scalar("SELECT count(*) FROM words") == 3
    assert held.value is not None
