"""Work trees of conversations in a database."""

from collections.abc import Sequence
from functools import partial

from gateway.conversations.work_trees import KeptTree
from gateway.ids import ConversationId, UserId
from memory.stores.database import SqlDatabase
from memory.stores.sqlite.row_values import columns_of, read_value


class SqlWorkTreeStore:
    """See `WorkTreeStore`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def has(self, conversation_id: ConversationId) -> bool:
        sql = "SELECT 1 FROM work_trees WHERE conversation_id = ?"
        return await self._database.scalar(sql, (conversation_id,)) is not None

    async def add(self, tree: KeptTree) -> None:
        await self._database.execute(
            "INSERT INTO work_trees (conversation_id, owner, made_at, merging)"
            " VALUES (:conversation_id, :owner, :made_at, :merging) ON CONFLICT DO NOTHING",
            columns_of(tree),
        )

    async def add_found(self, tree: KeptTree) -> None:
        await self._database.execute(
            "INSERT INTO work_trees (conversation_id, owner, made_at, merging)"
            " SELECT id, user_id, :made_at, :merging FROM conversations"
            " WHERE id = :conversation_id ON CONFLICT DO NOTHING",
            columns_of(tree),
        )

    async def of(self, owner: UserId) -> Sequence[KeptTree]:
        return await self._database.values(
            partial(read_value, KeptTree),
            "SELECT * FROM work_trees WHERE owner = ? ORDER BY conversation_id",
            (owner,),
        )

    async def note_merge(self, conversation_id: ConversationId, merging: str | None) -> None:
        await self._database.execute(
            "UPDATE work_trees SET merging = ? WHERE conversation_id = ?",
            (merging, conversation_id),
        )

    async def merging(self) -> Sequence[UserId]:
        rows = await self._database.rows(
            "SELECT DISTINCT owner FROM work_trees WHERE merging IS NOT NULL ORDER BY owner"
        )
        return [UserId(row["owner"]) for row in rows]

    async def remove(self, conversation_id: ConversationId) -> None:
        await self._database.execute(
            "DELETE FROM work_trees WHERE conversation_id = ?", (conversation_id,)
        )
