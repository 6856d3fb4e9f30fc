"""What was forgotten is gone from the full-text index's file, too."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from memory.stores.sqlite import vacuum
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import delete_item_blocking, put_item_blocking
from memory.stores.sqlite.vacuum import IndexVacuum, request_vacuum_blocking
from tests.support.episodes import FILE, open_memory
from tests.support.recall import make_item

AT = datetime(2026, 11, 20, tzinfo=UTC)
SECRET = "Nachtfalke kauft Zitronella 甲乙丙"


async def blocks(database: Database) -> bytes:
    rows = await database.rows("SELECT block FROM item_words_data")
    return b"".join(row["block"] for row in rows)


async def vacuumed(database: Database) -> bool:
    return await IndexVacuum(database, "item_words").vacuum()


async def fill(database: Database) -> None:
    bodies = {f"epi_{n}": f"plain words {n} kept here {n * 7}" for n in range(300)}

    def work(writer: sqlite3.Connection) -> None:
        for name, body in {**bodies, "epi_1000": SECRET}.items():
            put_item_blocking(writer, make_item(name, body))

    await database.write(work)


async def forget(database: Database) -> None:
    def work(writer: sqlite3.Connection) -> None:
        delete_item_blocking(writer, "epi_1000")
        request_vacuum_blocking(writer)

    await database.write(work)


async def test_the_words_are_gone_after_a_purge_and_the_rest_is_found(tmp_path: Path) -> None:
    async with open_memory(tmp_path) as database:
        await fill(database)
        assert not await vacuumed(database), "nothing asked for one"
        await forget(database)
        assert b"zitronella" in await blocks(database), "else there is nothing to show here"
        assert await vacuumed(database)
        assert b"zitronella" not in await blocks(database)
        found = await database.rows("SELECT rowid FROM item_words WHERE item_words MATCH 'kept'")
        assert len(found) == 300
        assert not await vacuumed(database), "it is done"
    assert b"zitronella" not in (tmp_path / FILE).read_bytes()


async def test_one_that_a_crash_cut_off_is_made_at_the_next_start(tmp_path: Path) -> None:
    async with open_memory(tmp_path) as database:
        await fill(database)
        await forget(database)
    async with open_memory(tmp_path) as database, anyio.create_task_group() as tasks:
        tasks.start_soon(IndexVacuum(database, "item_words").run)
        with anyio.fail_after(30):
            while await database.row("SELECT 1 FROM word_purge"):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        assert b"zitronella" not in await blocks(database)
        tasks.cancel_scope.cancel()


async def test_what_is_asked_for_while_one_goes_on_is_made_too(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = vacuum._merge_blocking  # noqa: SLF001  the moment between two of its transactions

    def asked_meanwhile(connection: sqlite3.Connection, *, index: str, pages: int) -> bool:
        if pages < 0:
            request_vacuum_blocking(connection)
        return merge(connection, index=index, pages=pages)

    await fill(database)
    await forget(database)
    monkeypatch.setattr(vacuum, "_merge_blocking", asked_meanwhile)
    assert await vacuumed(database)
    monkeypatch.setattr(vacuum, "_merge_blocking", merge)
    assert await vacuumed(database), "the second one was not made by the first"
    assert not await vacuumed(database)


def files_of(directory: Path) -> bytes:
    """Return the bytes of the database's file and its log."""
    return b"".join(file.read_bytes() for file in sorted(directory.glob(f"{FILE}*")))


async def test_a_purge_waits_for_who_still_reads_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = anyio.Event()
    pause = anyio.sleep

    async def told(seconds: float) -> None:
        if seconds == vacuum._BUSY_S:  # noqa: SLF001
            tried.set()
            seconds = 0.01
        await pause(seconds)

    monkeypatch.setattr(anyio, "sleep", told)
    async with open_memory(tmp_path) as database:
        await fill(database)
        with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT count(*) FROM items").fetchone()
            await forget(database)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(vacuumed, database)
                with anyio.fail_after(30):
                    await tried.wait()
                assert await database.row("SELECT 1 FROM word_purge"), "it is not done"
                other.execute("COMMIT")
        assert b"zitronella" not in files_of(tmp_path).lower()
        assert await database.row("SELECT 1 FROM word_purge") is None
