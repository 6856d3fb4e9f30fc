"""Makes anew what can be made of the rows: the full-text index, the vectors, and what a backend has.

In small transactions, so that a server that runs beside it waits for none of them long.
"""

import sqlite3
from datetime import datetime
from functools import partial
from typing import Final

from memory.clock import Now
from memory.outbox.delivery import NewDelivery
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.item_words import put_words_blocking
from memory.stores.sqlite.outbox import enqueue_again_blocking
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


async def redeliver(database: Database, backend: str, now: Now) -> int:
    """Have everything delivered to a backend once more; gives the number of items.

    Raises:
        StoreUnavailable: the database cannot be written; what was done before stays done.
    """
    seq = count = 0
    while done := await database.write(
        partial(_deliver_some_blocking, after=seq, backend=backend, now=now())
    ):
        seq, count = done[-1], count + len(done)
    return count


def _deliver_some_blocking(
    connection: sqlite3.Connection, *, after: int, backend: str, now: datetime
) -> list[int]:
    rows = connection.execute(
        "SELECT seq, id, owner_id, revision FROM items WHERE seq > ? ORDER BY seq LIMIT ?",
        (after, _BATCH),
    ).fetchall()
    for row in rows:
        delivery = NewDelivery(
            backend=backend,
            operation="put",
            item_id=row["id"],
            owner_id=row["owner_id"],
            revision=row["revision"],
        )
        enqueue_again_blocking(connection, delivery, now)
    return [row["seq"] for row in rows]


def _some_blocking(connection: sqlite3.Connection, after: int) -> list[int]:
    rows = connection.execute(
        "SELECT seq FROM items WHERE seq > ? ORDER BY seq LIMIT ?", (after, _BATCH)
    ).fetchall()
    for row in rows:
        put_words_blocking(connection, row["seq"])
    return [row["seq"] for row in rows]
