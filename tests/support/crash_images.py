"""Copies a database before each statement of its database's writer: the files that a process killed there leaves.

A killed process leaves what it has written. A copy that is made before a statement, in the thread
that is about to run it, holds the same. Real processes are killed in `test_store_killed` and
`test_kill_rounds`. The ordinary run copies at every third statement, the soak at each.
"""

import shutil
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeVar

import pytest

from memory.stores.sqlite.database import Database
from tests.support.episodes import open_memory

T = TypeVar("T")
Step = Callable[[Database], Awaitable[object]]

at_points = pytest.mark.parametrize(
    "every", [3, pytest.param(1, marks=pytest.mark.soak)], ids=["some", "each"]
)


async def crashed_everywhere(
    images: Path,
    steps: Sequence[Step],
    check: Callable[[Database], Awaitable[T]],
    *,
    every: int,
    fewest: int = 0,
    opening: Callable[[Path], AbstractAsyncContextManager[Database]] = open_memory,
) -> list[T]:
    """Run steps on a database, crash in the last of them, and return what `check` finds after each crash.

    The copies are checked in the order of their making, the last one is of the end. There are more
    than `fewest` of them, and each is sound before and after its check.
    """
    directory = images / "whole"
    directory.mkdir()
    passed = count = 0

    def copy() -> None:
        nonlocal count
        count += 1
        shutil.copytree(directory, images / str(count))

    def trace(sql: str) -> None:
        nonlocal passed
        if not sql.startswith("--"):  # a statement within one
            if passed % every == 0:
                copy()
            passed += 1

    *before, work = steps
    async with opening(directory) as database:
        for step in before:
            await step(database)
    async with opening(directory) as database:
        await database.write(lambda connection: connection.set_trace_callback(trace))
        await work(database)
    copy()
    assert count > fewest, "there are that many places to be killed at"
    found = []
    for number in range(1, count + 1):
        async with opening(images / str(number)) as database:
            await _check_sound(database)
            found.append(await check(database))
            await _check_sound(database)
    return found


async def texts(database: Database, sql: str, *values: str) -> list[str]:
    """Return the first column of a query's rows."""
    return [str(row[0]) for row in await database.rows(sql, values)]


async def _check_sound(database: Database) -> None:
    assert await texts(database, "PRAGMA integrity_check") == ["ok"]
    assert await database.rows("PRAGMA foreign_key_check") == []
    if not await texts(database, "SELECT name FROM sqlite_master WHERE name = 'item_words'"):
        return
    words = await texts(database, "SELECT rowid FROM item_words")
    assert sorted(words) == sorted(await texts(database, "SELECT seq FROM items"))
