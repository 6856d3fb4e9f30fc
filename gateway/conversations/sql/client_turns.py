"""The turns of clients that name no conversation, in SQLite."""

from collections.abc import Sequence

from gateway.conversations.model import ClientTurn
from gateway.ids import UserId
from memory.stores.database import SqlDatabase
from memory.stores.sqlite.row_values import columns_of, read_value


class ClientTurnStore:
    """The turns of clients that send their history. They go with their conversation."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def add(self, turn: ClientTurn) -> None:
        """Add a turn; nothing happens if its conversation is gone."""
        await self._database.execute(
            "INSERT INTO client_turns (user_id, thread, history, turn_id, conversation_id)"
            " SELECT :user_id, :thread, :history, :turn_id, id"
            " FROM conversations WHERE id = :conversation_id",
            columns_of(turn),
        )

    async def find(
        self, user_id: UserId, thread: str, history: str | None, *, limit: int
    ) -> Sequence[ClientTurn]:
        """Return a user's turns of a thread with that history, or with any, newest first."""
        return await self._database.values(
            lambda row: read_value(ClientTurn, row),
            "SELECT user_id, thread, history, turn_id, conversation_id FROM client_turns"
            " WHERE user_id = :user AND thread = :thread"
            " AND (CAST(:history AS TEXT) IS NULL OR history = :history)"
            " ORDER BY id DESC LIMIT :limit",
            {"user": user_id, "thread": thread, "history": history, "limit": limit},
        )
