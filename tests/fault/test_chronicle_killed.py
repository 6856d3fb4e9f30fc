"""The process is killed before each statement of recording a turn: all of it is there, or nothing."""

import sys
from pathlib import Path

import anyio
import pytest

from memory.stores.sqlite.database import Database
from tests.fault.chronicle_program import intents
from tests.support.episodes import open_memory, recorder_on

SCRIPT = Path(__file__).with_name("chronicle_program.py")
TABLES = ("intents", "pending_context", "ended_turns", "intent_fields")
MANY = 40
pytestmark = pytest.mark.fault


async def counts(database: Database) -> list[int]:
    found = [await database.rows(f"SELECT count(*) AS n FROM {table}") for table in TABLES]
    return [rows[0]["n"] for rows in found]


async def rows_of(database: Database) -> list[tuple[object, ...]]:
    found = [await database.rows(f"SELECT * FROM {table}") for table in TABLES]
    return sorted((tuple(row) for rows in found for row in rows), key=repr)


async def test_a_kill_between_any_two_statements_leaves_a_turn_whole_or_absent(
    tmp_path: Path,
) -> None:
    with anyio.fail_after(240):
        done = await anyio.run_process([sys.executable, str(SCRIPT), str(tmp_path)], stderr=None)
    points = done.stdout.decode().split()
    assert points[-1] == "done"
    assert len(points) > MANY, "there are that many places to be killed at"
    async with open_memory(tmp_path / str(len(points))) as database:
        whole, rows = await counts(database), await rows_of(database)
    assert whole[:3] == [5, 1, 1]
    for number in range(1, len(points)):
        async with open_memory(tmp_path / str(number)) as database:
            assert await counts(database) == [0, 0, 0, 0], f"half of it, killed at {number}"
            new = await recorder_on(database).record_intents(intents())
            assert len(new) == len(intents())
            assert await rows_of(database) == rows
