"""The check of a whole file at the start: damage is known before anybody reads the damaged part."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from memory.errors import StoreUnavailable
from memory.stores.sqlite import integrity
from memory.stores.sqlite.integrity import (
    check_blocking,
    check_integrity,
    holds_nothing_blocking,
)
from tests.unit.memory.database.words_file import TABLE, WAIT_S, insert, opened, peek


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
        await tasks.start(lambda task_status: check_integrity(database, [TABLE], task_status=task_status))  # fmt: skip
        told = await database.ping()
        tasks.cancel_scope.cancel()
    await database.close()
    return told


async def filled(file: Path) -> None:
    database = await opened(file, [TABLE])
    await insert(database, *[f"{n:0200}" for n in range(500)])
    await database.close()


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
        await tasks.start(lambda task_status: check_integrity(database, [TABLE], start_s=0.01, task_status=task_status))  # fmt: skip
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
