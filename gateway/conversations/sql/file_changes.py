"""The files that turns changed, in SQLite."""

import json
from typing import Any

from gateway.conversations.sql.leases import Fence
from gateway.ids import TurnId
from gateway.jsonsafe import json_text
from memory.stores.database import Connection, SqlDatabase


class FileChangeStore:
    """What turns changed in the workspace."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._fence = Fence(database)

    async def put(self, turn_id: TurnId, changes: dict[str, Any], *, epoch: int = 0) -> None:
        """Store a turn's changes, a JSON object; replaces earlier ones. No error if the turn is
        gone. Raise `LeaseLost` if its conversation has another epoch.

        They go with their turn, and a fork copies them. A cut of the power may lose them until the
        next `TurnStore.finish`.
        """

        def work(writer: Connection) -> None:
            sql = "SELECT conversation_id FROM turns WHERE id = ?"
            for row in writer.execute(sql, (turn_id,)).fetchall():
                self._fence.require_blocking(writer, row["conversation_id"], epoch)
                writer.execute(
                    "INSERT INTO file_changes (turn_id, data) VALUES (?, ?)"
                    " ON CONFLICT (turn_id) DO UPDATE SET data = excluded.data",
                    (turn_id, json_text(changes)),
                )

        await self._database.write(work, is_synced=False)

    async def get(self, turn_id: TurnId) -> dict[str, Any] | None:
        """Return a turn's changes; None if none were stored."""
        sql = "SELECT data FROM file_changes WHERE turn_id = ?"
        data = await self._database.scalar(sql, (turn_id,))
        found: dict[str, Any] | None = None if data is None else json.loads(data)
        return found
