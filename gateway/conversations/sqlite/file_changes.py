"""The files that turns changed, in SQLite."""

import json
from typing import Any

from gateway.ids import TurnId
from gateway.jsonsafe import json_text
from memory.stores.database import SqlDatabase


class SqliteFileChangeStore:
    """See `FileChangeStore`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def put(self, turn_id: TurnId, changes: dict[str, Any]) -> None:
        await self._database.execute(
            "INSERT INTO file_changes (turn_id, data) SELECT id, ? FROM turns WHERE id = ?"
            " ON CONFLICT (turn_id) DO UPDATE SET data = excluded.data",
            (json_text(changes), turn_id),
            is_synced=False,
        )

    async def get(self, turn_id: TurnId) -> dict[str, Any] | None:
        sql = "SELECT data FROM file_changes WHERE turn_id = ?"
        data = await self._database.scalar(sql, (turn_id,))
        found: dict[str, Any] | None = None if data is None else json.loads(data)
        return found
