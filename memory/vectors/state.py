"""What the database knows of the vector index: its state, and items to deliver to it again."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from memory.clock import Now
from memory.outbox.delivery import NewDelivery
from memory.outbox.store import enqueue_again_blocking
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.row_values import columns_of, read_value
from memory.stores.sqlite.statements import insert_blocking, placeholders
from memory.vectors.indexer import BACKEND
from memory.vectors.protocol import IndexState

_STATE: Final = "model_id, dimension, built_to, complete"
_REPLACING: Final = (
    f"ON CONFLICT (only_one) DO UPDATE SET ({_STATE})"
    " = (excluded.model_id, excluded.dimension, excluded.built_to, excluded.complete)"
)


class SqlIndexState:
    """The state of the vector index, in the memory's database; see `IndexStateStore`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def get(self) -> IndexState | None:
        return await self._database.value(
            partial(read_value, IndexState),
            f"SELECT {_STATE} FROM vector_index",  # noqa: S608  names of our own
        )

    async def put(self, state: IndexState) -> None:
        row = columns_of(state, only_one=1)
        put = partial(insert_blocking, table="vector_index", values=row, conflict=_REPLACING)
        await self._database.write(put)

    async def remove(self) -> None:
        """Forget the index and what waits for it: it is deleted, and made anew if there is one
        again.
        """
        left = "SELECT 1 FROM vector_index UNION ALL SELECT 1 FROM outbox WHERE backend = ? LIMIT 1"
        if await self._database.scalar(left, (BACKEND,)) is not None:
            await self._database.write(_remove_blocking)

    async def expected_count(self, backend: str) -> int:
        expected = await self._database.scalar(
            "SELECT (SELECT count(*) FROM items) - (SELECT count(*) FROM outbox WHERE backend = ?"
            " AND operation = 'put' AND status != 'delivered')",
            (backend,),
        )
        return max(0, int(expected or 0))


def forget_state_blocking(connection: Connection) -> None:
    """Delete the state, so that the index is made anew from the items."""
    connection.execute("DELETE FROM vector_index")


def _remove_blocking(connection: Connection) -> None:
    forget_state_blocking(connection)
    connection.execute("DELETE FROM outbox WHERE backend = ?", (BACKEND,))


async def deliver_vectors_again(database: SqlDatabase, now: Now, item_ids: Sequence[str]) -> int:
    """Enqueue those of the items that still exist for the vector index; return how many.

    What waits already is not enqueued twice. What was given up stays so: a search does not retry
    it.
    """

    def work(connection: Connection) -> int:
        rows = connection.execute(
            "SELECT id AS item_id, owner_id, revision FROM items WHERE id IN"  # noqa: S608  placeholders
            f" ({placeholders(item_ids)}) AND NOT EXISTS (SELECT 1 FROM outbox"
            " WHERE item_id = items.id AND backend = ? AND status != 'delivered') ORDER BY seq",
            (*item_ids, BACKEND),
        ).fetchall()
        new = [NewDelivery(backend=BACKEND, operation="put", **dict(row)) for row in rows]
        enqueue_again_blocking(connection, new, now())
        return len(new)

    return await database.write(work)
