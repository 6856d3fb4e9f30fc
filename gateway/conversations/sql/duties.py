"""Work that only one of the nodes of a database does at a time."""

from typing import Final

from gateway.conversations.leases import Node
from gateway.conversations.sql.leases import clock_of
from memory.stores.database import Connection, SqlDatabase

_LIVING: Final = "FROM nodes WHERE id = :id AND incarnation = :incarnation AND expires_at > :now"
_TAKE: Final = (
    "INSERT INTO duties (name, node_id, incarnation) SELECT :duty, id, incarnation"  # noqa: S608
    f" {_LIVING} ON CONFLICT (name) DO UPDATE SET node_id = excluded.node_id,"
    " incarnation = excluded.incarnation WHERE duties.incarnation = excluded.incarnation"
    " OR NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = duties.node_id"
    " AND nodes.incarnation = duties.incarnation AND nodes.expires_at > :now) RETURNING name"
)
_LEFT: Final = f"SELECT expires_at - :now {_LIVING}"


class DutyStore:
    """Which node has which duty. One of a dead node can be taken by any other.

    Raises `StoreUnavailable`.
    """

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._clock = clock_of(database)

    async def take(self, node: Node, duty: str) -> int:
        """Take a duty that no other living node has, or keep it; return for how many milliseconds
        the node lives without a further beat.

        0 if another node has it, or `node` is dead or has left.
        """

        def work(writer: Connection) -> int:
            values = {
                "id": node.id,
                "incarnation": node.incarnation,
                "duty": duty,
                "now": self._clock(writer),
            }
            if not writer.execute(_TAKE, values).fetchall():
                return 0
            return int(writer.execute(_LEFT, values).fetchone()[0])

        return await self._database.write(work, is_synced=False)

    async def release(self, node: Node, duty: str) -> None:
        """Release a duty. No error if the node does not have it."""
        await self._database.execute(
            "DELETE FROM duties WHERE name = ? AND incarnation = ?", (duty, node.incarnation)
        )
