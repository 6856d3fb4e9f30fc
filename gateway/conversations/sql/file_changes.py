"""The files that turns changed, in SQLite."""

import json
from typing import Any

from gateway.conversations.sql.leases import Fence
from gateway.ids import TurnId
from gateway.jsonsafe import json_text
from memory.stores.database import Connection, SqlDatabase


class SqlFileChangeStore:
    """See `FileChangeStore`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._fence = Fence(database)

    async def put(self, turn_id: TurnId, changes: dict[str, Any], *, epoch: int = 0) -> None:

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
        sql = "SELECT data FROM file_changes WHERE turn_id = ?"
        data = await self._database.scalar(sql, (turn_id,))
        found: dict[str, Any] | None = None if data is None else json.loads(data)
        return found
