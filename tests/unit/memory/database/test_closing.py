"""A database is closed: what was begun is finished, what comes then is refused."""

import sqlite3
import threading
from pathlib import Path

import anyio
import pytest

from memory.errors import StoreUnavailable
from tests.unit.memory.database.words_file import (
    TABLE,
    WAIT_S,
    insert,
    opened,
    peek,
    threads_left,
    words_of,
)


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
    assert [path.name for path in tmp_path.iterdir()] == ["d"], "nothing is left beside the file"


async def test_closing_is_not_cut_short(tmp_path: Path) -> None:
    database = await opened(tmp_path / "d", [TABLE])
    with anyio.CancelScope() as scope:
        scope.cancel()
        await database.close()
    assert await threads_left() == []
    with pytest.raises(StoreUnavailable):
        await words_of(database)
