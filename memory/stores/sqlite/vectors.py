"""What SQLite knows of the vector index: its state, and what is to be delivered to it once more."""

import sqlite3
from collections.abc import Sequence
from functools import partial

from memory.clock import Now
from memory.outbox.delivery import NewDelivery
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.outbox import enqueue_again_blocking
from memory.vectors.keeper import BACKEND
from memory.vectors.state import IndexState


class SqliteIndexState:
    """Keeps it in the memory's database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self) -> IndexState | None:
        """Give it; None: there never was an index."""
        row = await self._database.row(
            "SELECT model_id, dimension, built_to, complete FROM vector_index"
        )
        if row is None:
            return None
        return IndexState(
            model_id=row["model_id"],
            dimension=row["dimension"],
            built_to=row["built_to"],
            complete=bool(row["complete"]),
        )

    async def put(self, state: IndexState) -> None:
        """Write it down."""
        await self._database.write(
            lambda writer: writer.execute(
                "INSERT OR REPLACE INTO vector_index"
                " (only_one, model_id, dimension, built_to, complete) VALUES (1, ?, ?, ?, ?)",
                (state.model_id, state.dimension, state.built_to, int(state.complete)),
            )
        )

    async def expected_count(self, backend: str) -> int:
        """Tell how many items an index that is complete holds at least: those not waiting for it."""
        row = await self._database.row(
            "SELECT (SELECT count(*) FROM items) - (SELECT count(*) FROM outbox WHERE backend = ?"
            " AND operation = 'put' AND status != 'delivered') AS expected",
            (backend,),
        )
        return 0 if row is None else max(0, int(row["expected"]))


class SqliteVectorDeliveries:
    """Has items delivered to the vector index that it was found to lack."""

    def __init__(self, database: Database, now: Now) -> None:
        self._database = database
        self._now = now

    async def again(self, item_ids: Sequence[str]) -> int:
        """Enqueue those of the items that are still there; returns how many.

        What waits already is not enqueued twice, and what was given up stays so until somebody has it
        tried again: a search must not.
        """
        return await self._database.write(partial(self._again_blocking, item_ids=item_ids))

    def _again_blocking(self, connection: sqlite3.Connection, item_ids: Sequence[str]) -> int:
        rows = connection.execute(
            "SELECT id, owner_id, revision FROM items WHERE id IN"  # noqa: S608  placeholders
            f" ({', '.join('?' * len(item_ids))}) AND NOT EXISTS (SELECT 1 FROM outbox"
            " WHERE item_id = items.id AND backend = ? AND status != 'delivered') ORDER BY seq",
            (*item_ids, BACKEND),
        ).fetchall()
        for row in rows:
            delivery = NewDelivery(
                backend=BACKEND,
                operation="put",
                item_id=row["id"],
                owner_id=row["owner_id"],
                revision=row["revision"],
            )
            enqueue_again_blocking(connection, delivery, self._now())
        return len(rows)
