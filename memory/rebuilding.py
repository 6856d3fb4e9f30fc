"""Makes anew what can be made of the rows: the full-text index, and the vectors.

In small transactions, so that a server that runs beside it waits for none of them long.
"""

import sqlite3
from functools import partial
from typing import Final

from memory.stores.sqlite.database import Database
from memory.stores.sqlite.item_words import put_words_blocking
from memory.stores.sqlite.vectors import SqliteIndexState
from memory.vectors.state import IndexState

_BATCH: Final = 100


async def rebuild(database: Database) -> int:
    """Write all items' words anew and have the vectors made anew; gives the number of items.

    The vectors are made by the server, when it runs or at its next start.

    Raises:
        StoreUnavailable: the database cannot be written; what was done before stays done.
    """
    seq = count = 0
    while True:
        done = await database.write(partial(_some_blocking, after=seq))
        if not done:
            break
        seq, count = done[-1], count + len(done)
    states = SqliteIndexState(database)
    state = await states.get()
    if state is not None:
        await states.put(IndexState(model_id="", dimension=state.dimension))
    return count


def _some_blocking(connection: sqlite3.Connection, after: int) -> list[int]:
    rows = connection.execute(
        "SELECT seq FROM items WHERE seq > ? ORDER BY seq LIMIT ?", (after, _BATCH)
    ).fetchall()
    for row in rows:
        put_words_blocking(connection, row["seq"])
    return [row["seq"] for row in rows]
