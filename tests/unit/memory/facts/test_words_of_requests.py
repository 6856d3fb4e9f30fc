"""What earlier releases left with its words after it was forgotten goes; what a turn has yet to tell stays."""

import sqlite3
from contextlib import closing
from pathlib import Path

from memory.stores.sqlite.database import open_database
from tests.support.episodes import FILE, MIGRATIONS, open_memory

BEFORE = next(
    n for n, one in enumerate(MIGRATIONS) if one.startswith("-- What an agent of another")
)


async def test_the_words_of_requests_without_a_result_go(tmp_path: Path) -> None:
    await (await open_database(tmp_path / FILE, MIGRATIONS[:BEFORE])).close()
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute("INSERT INTO ended_turns (turn_id, seq) VALUES ('trn_1', 1)")
        for turn_id in ("req_1", "trn_1", "trn_2"):
            connection.execute("INSERT INTO forgotten_on_request VALUES (?, 'words')", (turn_id,))
        connection.commit()
    async with open_memory(tmp_path) as database:
        rows = await database.rows("SELECT turn_id FROM forgotten_on_request")
        assert [row["turn_id"] for row in rows] == ["trn_2"]
