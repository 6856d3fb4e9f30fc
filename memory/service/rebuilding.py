"""Rebuilds what is derived from stored items: the full-text index, the vectors, and what a backend
has.

It works in small transactions, so that a server running beside it never waits long.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from memory.clock import Now
from memory.outbox.delivery import deliveries_of
from memory.outbox.store import enqueue_again_blocking
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.fulltext_index import index_item_blocking
from memory.vectors.protocol import IndexState
from memory.vectors.state import SqlIndexState

_BATCH: Final = 100
_Work = Callable[[Connection, list[Any]], None]


async def rebuild(database: SqlDatabase) -> int:
    """Index all items again and have the vectors rebuilt; return the number of items.

    The server rebuilds the vectors, while it runs or at its next start. Raise `StoreUnavailable` if
    the database cannot be written; what was done before stays done.
    """
    count = await _for_all_items(database, _index_blocking)
    states = SqlIndexState(database)
    state = await states.get()
    if state is not None:
        await states.put(IndexState(model_id="", dimension=state.dimension))
    return count


def index_all_blocking(connection: Connection) -> None:
    """Index all items again, in the transaction that is open."""
    seq = 0
    while done := _batch_blocking(connection, seq, _index_blocking):
        seq = done[-1]


async def redeliver(database: SqlDatabase, backend: str, now: Now) -> int:
    """Deliver all items to a backend again; return the number of items.

    Raise `StoreUnavailable` if the database cannot be written; what was done before stays done.
    """

    def deliver_blocking(connection: Connection, rows: list[Any]) -> None:
        for row in rows:
            new = deliveries_of("put", row["id"], row["owner_id"], row["revision"], [backend])
            enqueue_again_blocking(connection, new, now())

    return await _for_all_items(database, deliver_blocking)


async def _for_all_items(database: SqlDatabase, work: _Work) -> int:
    seq = count = 0
    while done := await database.write(partial(_batch_blocking, after=seq, work=work)):
        seq, count = done[-1], count + len(done)
    return count


def _batch_blocking(connection: Connection, after: int, work: _Work) -> list[int]:
    rows = connection.execute(
        "SELECT seq, id, owner_id, revision FROM items WHERE seq > ? ORDER BY seq LIMIT ?",
        (after, _BATCH),
    ).fetchall()
    work(connection, rows)
    return [row["seq"] for row in rows]


def _index_blocking(connection: Connection, rows: list[Any]) -> None:
    for row in rows:
        index_item_blocking(connection, row["seq"])
