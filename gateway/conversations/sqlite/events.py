"""Events in SQLite."""

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict

from gateway.conversations.model import TurnEvent
from gateway.conversations.sqlite.rows import event_of
from gateway.ids import ConversationId, TurnId
from memory.stores.sqlite.database import Database


def insert_events(writer: sqlite3.Connection, events: Sequence[TurnEvent]) -> None:
    """Insert within an open transaction; a deleted conversation takes no more events."""
    writer.executemany(
        "INSERT INTO events (seq, conversation_id, turn_id, n, type, data)"
        " SELECT :seq, :conversation_id, :turn_id, :n, :type, :data"
        " WHERE EXISTS (SELECT 1 FROM conversations WHERE id = :conversation_id)"
        " AND NOT EXISTS (SELECT 1 FROM events WHERE seq = :seq AND turn_id = :turn_id AND n = :n)",
        [asdict(event) for event in events],
    )


class SqliteEventStore:
    """See `EventStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def last_seq(self) -> int:
        """See `EventStore.last_seq`."""
        row = await self._database.row(
            "SELECT coalesce(max(seq), 0) AS last FROM sqlite_sequence WHERE name = 'events'"
        )  # deleted ones count too
        assert row is not None
        return int(row["last"])

    async def append(self, events: Sequence[TurnEvent]) -> None:
        """See `EventStore.append`."""
        await self._database.write(lambda writer: insert_events(writer, events))

    async def last_n(self, turn_id: TurnId) -> int:
        """See `EventStore.last_n`."""
        row = await self._database.row(
            "SELECT coalesce(max(n), 0) AS last FROM events WHERE turn_id = ?", (turn_id,)
        )
        assert row is not None
        return int(row["last"])

    async def find(self, turn_id: TurnId, n: int) -> int | None:
        """See `EventStore.find`."""
        row = await self._database.row(
            "SELECT seq FROM events WHERE turn_id = ? AND n = ?", (turn_id, n)
        )
        return None if row is None else int(row["seq"])

    async def after(
        self,
        conversation_id: ConversationId,
        seq: int,
        *,
        limit: int,
        turn_id: TurnId | None = None,
    ) -> Sequence[TurnEvent]:
        """See `EventStore.after`."""
        if turn_id is not None:
            return await self._database.values(
                event_of,
                "SELECT * FROM events WHERE turn_id = :turn_id AND seq > :seq AND n >"
                " coalesce((SELECT n FROM events WHERE seq = :seq AND turn_id = :turn_id), 0)"
                " ORDER BY n LIMIT :limit",
                {"turn_id": turn_id, "seq": seq, "limit": limit},
            )
        return await self._database.values(
            event_of,
            "SELECT * FROM events WHERE conversation_id = ? AND seq > ? ORDER BY seq LIMIT ?",
            (conversation_id, seq, limit),
        )
