"""Work trees of conversations in a database."""

from collections.abc import Sequence
from functools import partial

from gateway.conversations.work_trees import KeptTree
from gateway.ids import ConversationId, UserId
from memory.stores.database import SqlDatabase
from memory.stores.sqlite.row_values import columns_of, read_value


class WorkTreeStore:
    """Work trees by conversation. They stay when their conversation is deleted.

    Raises `StoreUnavailable`.
    """

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def has(self, conversation_id: ConversationId) -> bool:
        """Return whether a conversation has a work tree."""
        sql = "SELECT 1 FROM work_trees WHERE conversation_id = ?"
        return await self._database.scalar(sql, (conversation_id,)) is not None

    async def add(self, tree: KeptTree) -> None:
        """Add a work tree; one that is there stays as it is."""
        await self._database.execute(
            "INSERT INTO work_trees (conversation_id, owner, made_at, merging)"
            " VALUES (:conversation_id, :owner, :made_at, :merging) ON CONFLICT DO NOTHING",
            columns_of(tree),
        )

    async def add_found(self, tree: KeptTree) -> None:
        """Add a work tree for the user of its conversation; do nothing if that is gone."""
        await self._database.execute(
            "INSERT INTO work_trees (conversation_id, owner, made_at, merging)"
            " SELECT id, user_id, :made_at, :merging FROM conversations"
            " WHERE id = :conversation_id ON CONFLICT DO NOTHING",
            columns_of(tree),
        )

    async def of(self, owner: UserId) -> Sequence[KeptTree]:
        """List the work trees of a workspace, by conversation."""
        return await self._database.values(
            partial(read_value, KeptTree),
            "SELECT * FROM work_trees WHERE owner = ? ORDER BY conversation_id",
            (owner,),
        )

    async def note_merge(self, conversation_id: ConversationId, merging: str | None) -> None:
        """Note a merge that begins, or with None that it has ended."""
        await self._database.execute(
            "UPDATE work_trees SET merging = ? WHERE conversation_id = ?",
            (merging, conversation_id),
        )

    async def merging(self) -> Sequence[UserId]:
        """List the owners of workspaces with merges that have not ended."""
        rows = await self._database.rows(
            "SELECT DISTINCT owner FROM work_trees WHERE merging IS NOT NULL ORDER BY owner"
        )
        return [UserId(row["owner"]) for row in rows]

    async def remove(self, conversation_id: ConversationId) -> None:
        """Remove a work tree. No error if there is none."""
        await self._database.execute(
            "DELETE FROM work_trees WHERE conversation_id = ?", (conversation_id,)
        )
