"""A database from before cases were rows with numbers keeps all that was known of them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory.cases.store import SqlCaseStore
from memory.clock import utc_now
from memory.stores.sqlite.database import open_database
from tests.support.episodes import FILE, MIGRATIONS, open_memory

BEFORE = next(n for n, one in enumerate(MIGRATIONS) if "cases_in_rows" in one)
CASES = [
    (f"cas_{n}", "ann", b"f%d" % n, b"like", n % 2, "draft", n, f'{{"n": {n}}}') for n in range(5)
]
LIKENESS = 3
"""The place of a column that a later migration takes away, with its index."""
BELONGING: dict[str, list[tuple[object, ...]]] = {
    "case_votes": [("cas_1", "cnv_1", 1, None, "shop", None, "2026-11-20T00:00:00Z", 1)],
    "case_relations": [("cas_1", "cas_2", "same_root_cause", 0.9)],
    "case_reports": [(7, "cas_2", None, "2026-11-20T00:00:00Z", "{}")],
    "case_history": [(9, "cas_3", "2026-11-20T00:00:00Z", "created", "agent", "ann", None, "{}")],
    "case_views": [("cnv_2", "cas_1", "2026-11-20T00:00:00Z", 0)],
}
LATER: dict[str, tuple[object, ...]] = {"case_votes": (None, 0), "case_views": (None,)}
"""What columns that were added since say of them."""
SCHEMA = (
    "SELECT name, sql FROM sqlite_master WHERE tbl_name LIKE 'case%' AND type = 'index'"
    " AND sql IS NOT NULL ORDER BY name"
)


def put(connection: sqlite3.Connection, table: str, rows: list[tuple[object, ...]]) -> None:
    for row in rows:
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


async def an_old_one(directory: Path) -> list[tuple[object, ...]]:
    """Make a database from before; gives its indexes of cases."""
    await (await open_database(directory / FILE, MIGRATIONS[:BEFORE])).close()
    with closing(sqlite3.connect(directory / FILE)) as connection:
        put(connection, "cases", [*CASES])
        for table, rows in BELONGING.items():
            put(connection, table, rows)
        connection.commit()
        return [tuple(row) for row in connection.execute(SCHEMA)]


@pytest.mark.parametrize("table", ["cases", *BELONGING])
async def test_all_of_it_is_there_afterwards(tmp_path: Path, table: str) -> None:
    indexes = await an_old_one(tmp_path)
    async with open_memory(tmp_path) as database:
        rows = [tuple(row) for row in await database.rows(f"SELECT * FROM {table}")]
        kept = [(*case[:LIKENESS], *case[LIKENESS + 1 :]) for case in CASES]
        before: list[tuple[object, ...]] = [*kept] if table == "cases" else BELONGING[table]
        assert rows == [(*row, *LATER.get(table, ())) for row in before]
        assert [tuple(row) for row in await database.rows(SCHEMA)] == [
            index_name for index_name in indexes if index_name[0] != "cases_like"
        ]
        assert await database.rows("PRAGMA foreign_key_check") == []
        assert [row[0] for row in await database.rows("SELECT rowid FROM cases")] == [1, 2, 3, 4, 5]


async def test_what_old_votes_warned_of_is_their_signal(tmp_path: Path) -> None:
    await an_old_one(tmp_path)
    shown = ("shop", None, "2026-11-20T00:00:00Z", 4)
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        signals = ("conflict", "high_risk", "stale", None)
        old: list[tuple[object, ...]] = [
            ("cas_2", f"cnv_{n}", None, one, *shown) for n, one in enumerate(signals)
        ]
        put(connection, "case_votes", old)
        connection.commit()
    async with open_memory(tmp_path) as database:
        votes = (await SqlCaseStore(database, utc_now, deliver_to=()).votes(["cas_2"]))["cas_2"]
    assert [vote.signal for vote in votes] == ["conflict", "high_risk", "stale", None]
