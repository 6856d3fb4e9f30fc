"""What was forgotten is gone from the full-text index's file, too."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import anyio

from memory.items import Item
from memory.scope import Scope
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import delete_item_blocking, put_item_blocking
from memory.stores.sqlite.word_purge import WordPurge, ask_purge_blocking
from tests.support.episodes import FILE, open_memory

AT = datetime(2026, 11, 20, tzinfo=UTC)
SECRET = "Nachtfalke kauft Zitronella 甲乙丙"


def item(number: int, body: str) -> Item:
    return Item(
        id=f"epi_{number}",
        kind="episode",
        scope=Scope(owner_id="ann"),
        title=f"item{number}",
        summary="",
        body=body,
        source="test",
        occurred_at=AT,
        updated_at=AT,
    )


async def blocks(database: Database) -> bytes:
    rows = await database.rows("SELECT block FROM item_words_data")
    return b"".join(row["block"] for row in rows)


async def fill(database: Database) -> None:
    def work(writer: sqlite3.Connection) -> None:
        for number in range(300):
            put_item_blocking(writer, item(number, f"plain words {number} kept here {number * 7}"))
        put_item_blocking(writer, item(1000, SECRET))

    await database.write(work)


async def forget(database: Database) -> None:
    def work(writer: sqlite3.Connection) -> None:
        delete_item_blocking(writer, "epi_1000")
        ask_purge_blocking(writer)

    await database.write(work)


async def test_the_words_are_gone_after_a_purge_and_the_rest_is_found(tmp_path: Path) -> None:
    async with open_memory(tmp_path) as database:
        await fill(database)
        assert not await WordPurge(database).purge(), "nothing asked for one"
        await forget(database)
        assert b"zitronella" in await blocks(database), "else there is nothing to show here"
        assert await WordPurge(database).purge()
        assert b"zitronella" not in await blocks(database)
        found = await database.rows("SELECT rowid FROM item_words WHERE item_words MATCH 'kept'")
        assert len(found) == 300
        assert not await WordPurge(database).purge(), "it is done"
    assert b"zitronella" not in (tmp_path / FILE).read_bytes()


async def test_one_that_a_crash_cut_off_is_made_at_the_next_start(tmp_path: Path) -> None:
    async with open_memory(tmp_path) as database:
        await fill(database)
        await forget(database)
    async with open_memory(tmp_path) as database, anyio.create_task_group() as tasks:
        await tasks.start(WordPurge(database).run)
        with anyio.fail_after(30):
            while await database.row("SELECT 1 FROM word_purge"):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        assert b"zitronella" not in await blocks(database)
        tasks.cancel_scope.cancel()
