"""The state of the vector index, in SQLite."""

from memory.stores.sqlite.database import Database
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
