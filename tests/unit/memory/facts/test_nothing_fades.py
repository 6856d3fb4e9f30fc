"""What an earlier release let fade holds again; what something else came in the place of does not."""

import sqlite3
from contextlib import closing
from pathlib import Path

from memory.stores.sqlite.database import open_database
from tests.support.episodes import FILE, MIGRATIONS, open_memory

BEFORE = next(n for n, one in enumerate(MIGRATIONS) if one[-25:] == "DROP TABLE tidied_facts;\n")
AT = "2026-11-20T00:00:00.000Z"
STEPS = [("fac_1", "faded", None), ("fac_2", "superseded", None), ("fac_3", "faded", AT)]


async def test_a_faded_fact_holds_again(tmp_path: Path) -> None:
    await (await open_database(tmp_path / FILE, MIGRATIONS[:BEFORE])).close()
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        for item_id, action, undone_at in STEPS:
            connection.execute(
                "INSERT INTO items (id, kind, owner_id, labels, title, summary, body, source, tags,"
                " occurred_at, updated_at, revision, valid_until)"
                " VALUES (?, 'fact', 'ann', '{}', '', '', '', '', '[]', ?, ?, 1, ?)",
                (item_id, AT, AT, AT),
            )
            by = "fac_9" if action == "superseded" else None
            connection.execute(
                "INSERT INTO facts VALUES (?, 'ann', ?, 'request', 0, NULL, ?, NULL)",
                (item_id, item_id, by),
            )
            connection.execute(
                "INSERT INTO tidied_facts (owner_id, at, action, fact_id, undone_at)"
                " VALUES ('ann', ?, ?, ?, ?)",
                (AT, action, item_id, undone_at),
            )
        connection.commit()
    async with open_memory(tmp_path) as database:
        rows = await database.rows("SELECT id FROM items WHERE valid_until IS NULL")
        assert [row["id"] for row in rows] == ["fac_1"]
