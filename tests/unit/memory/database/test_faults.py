"""A disk that is full, held by somebody or damaged is told in our words."""

import sqlite3
from pathlib import Path

import pytest

from memory.errors import StoreDamaged, StoreUnavailable
from tests.unit.memory.database.words_file import TABLE, insert, opened, peek, words_of


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
    await database.close()


async def test_a_file_that_is_damaged_while_it_is_open_is_told(tmp_path: Path) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    await insert(database, *[f"{n:0200}" for n in range(500)])
    await database.close()
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


async def test_a_schema_that_is_not_text_is_damage(tmp_path: Path) -> None:
    """SQLite quotes it in its message, which the driver then cannot decode."""
    database = await opened(tmp_path / "d", [TABLE])
    await database.close()
    whole = (tmp_path / "d").read_bytes()
    (tmp_path / "d").write_bytes(whole.replace(b"tablewordswords", b"tablewor\xffsxords"))
    with pytest.raises(StoreDamaged, match="opened: it is damaged"):
        await opened(tmp_path / "d", [TABLE])


async def test_a_text_that_is_not_text_is_damage(tmp_path: Path) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    await database.write(
        lambda writer: writer.execute("INSERT INTO words VALUES (CAST(x'ff' AS TEXT))")
    )
    with pytest.raises(StoreDamaged):
        await words_of(database)
    assert await database.ping() is not None
    await database.close()


async def test_a_row_that_cannot_be_understood_is_damage(tmp_path: Path) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    await insert(database, "12", "x")
    with pytest.raises(StoreDamaged):
        await database.values(lambda row: int(row["word"]), "SELECT word FROM words")
    assert await database.ping() is not None
    await database.close()


@pytest.mark.parametrize("sql", ["SELECT letter FROM words", "SELECT * FROM letters"])
async def test_a_table_or_column_that_is_gone_is_damage(tmp_path: Path, sql: str) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    with pytest.raises(StoreDamaged):
        await database.rows(sql)
    await database.close()
