"""A file is brought to the program's version step by step, or left as it was."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.conversations import migrations
from memory.errors import StoreUnavailable
from memory.stores.sqlite import database as module
from memory.stores.sqlite.database import migrations_of
from tests.unit.memory.database.words_file import TABLE, insert, opened, peek, words_of

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
