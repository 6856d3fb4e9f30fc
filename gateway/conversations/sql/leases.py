"""Nodes and leases in a database."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from gateway.conversations.leases import Beat, Lease, LeaseLost, Node
from gateway.ids import ConversationId
from memory.stores.database import Connection, Rows, SqlDatabase, send
from memory.stores.sqlite.row_values import columns_of, read_value
from memory.stores.sqlite.statements import IN_IDS, id_list, placeholders

Clock = Callable[[Connection], int]
"""Returns the database's time in milliseconds."""

_NOW: Final = {
    "sqlite": "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    "postgresql": "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
}
_NODE: Final = "nodes.id, nodes.incarnation, nodes.url, nodes.secret, nodes.process"
_MINE: Final = (
    "SELECT conversation_id, epoch, last_seq FROM leases"
    " WHERE node_id = :id AND incarnation = :incarnation"
)
_RELEASE: Final = (
    "UPDATE leases SET node_id = NULL, incarnation = NULL"
    " WHERE node_id = :id AND incarnation = :incarnation"
)
_LET_GO: Final = (
    "UPDATE leases SET incarnation = NULL"
    " WHERE node_id = :id AND incarnation = :incarnation AND conversation_id = :conversation_id"
)
_WAS_LET_GO: Final = "node_id IS NOT NULL AND incarnation IS NULL"
"""What `_LET_GO` leaves. A node that leaves, or dies, leaves both or none."""
_TAKE: Final = (
    "INSERT INTO leases (conversation_id, node_id, incarnation, epoch, last_seq)"
    " SELECT conversations.id, :id, :incarnation, 1, (SELECT coalesce(max(seq), 0) FROM events"
    " WHERE conversation_id = conversations.id AND seq <= 1000000000000000) FROM conversations"
    " WHERE {which} AND EXISTS (SELECT 1 FROM nodes"
    " WHERE id = :id AND incarnation = :incarnation AND draining = 0)"
    " ON CONFLICT (conversation_id) DO UPDATE SET node_id = excluded.node_id,"
    " incarnation = excluded.incarnation, epoch = leases.epoch + 1, last_seq = excluded.last_seq"
    " WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = leases.node_id"
    " AND nodes.incarnation = leases.incarnation AND nodes.expires_at > :now)"
    " RETURNING conversation_id, epoch, last_seq"
)
_LOCK: Final = (
    "INSERT INTO workspace_locks (name, node_id, incarnation) VALUES (:name, :id, :incarnation)"
    " ON CONFLICT (name) DO UPDATE SET node_id = excluded.node_id,"
    " incarnation = excluded.incarnation WHERE NOT EXISTS (SELECT 1 FROM nodes"
    " WHERE nodes.id = workspace_locks.node_id"
    " AND nodes.incarnation = workspace_locks.incarnation"
    " AND nodes.expires_at > :now AND nodes.id <> excluded.node_id)"
    " RETURNING name"
)
_TAKE_ONE: Final = _TAKE.format(which="conversations.id = :conversation_id")
_UNFINISHED: Final = "(SELECT conversation_id FROM turns WHERE state IN ('queued', 'running'))"
_TAKE_UNFINISHED: Final = _TAKE.format(which=f"conversations.id IN {_UNFINISHED}")
_ENDED: Final = "(SELECT conversation_id FROM leases WHERE incarnation IS NULL)"
_TAKE_RELEASED: Final = _TAKE.format(
    which=f"conversations.id IN {_UNFINISHED} AND conversations.id IN {_ENDED}"
)


def clock_of(database: SqlDatabase) -> Clock:
    """Return what reads a database's time in milliseconds since 1970."""
    sql = _NOW[database.engine]
    return lambda connection: int(connection.execute(sql).fetchone()[0])


def take_blocking(
    writer: Connection, node: Node, conversation_id: ConversationId, now_ms: int
) -> Lease | None:
    """Take a conversation within an open transaction; see `LeaseStore.take`."""
    values = columns_of(node, conversation_id=conversation_id, now=now_ms)
    mine = f"{_MINE} AND conversation_id = :conversation_id"
    if found := writer.execute(mine, values).fetchall():
        return read_value(Lease, found[0])
    let_go = writer.execute(
        f"SELECT 1 FROM leases WHERE conversation_id = :conversation_id AND {_WAS_LET_GO}",  # noqa: S608
        values,
    ).fetchall()
    found = writer.execute(_TAKE_ONE, values).fetchall()
    return read_value(Lease, found[0], was_let_go=bool(let_go)) if found else None


class Fence:
    """Compares epochs within the transactions of owners, which must write nothing under another."""

    def __init__(self, database: SqlDatabase, leases: str = "leases") -> None:
        """Initialise; `leases` is the table, with its schema if that is not the database's own."""
        self._leases = leases
        # where transactions do not run one after another, a take-over waits for the owner's end
        self._lock = " FOR SHARE" if database.engine == "postgresql" else ""

    def read_blocking(self, writer: Connection, ids: Collection[ConversationId]) -> Rows:
        """Read the leases of some conversations, so that they stay as they are until the end of
        the transaction.
        """
        return send(
            writer,
            f"SELECT conversation_id, epoch FROM {self._leases}"  # noqa: S608
            f" WHERE conversation_id IN ({placeholders(list(ids))})"
            f" ORDER BY conversation_id{self._lock}",
            list(ids),
        )

    def lost_blocking(
        self,
        writer: Connection,
        ids: Collection[ConversationId],
        epochs: Mapping[ConversationId, int],
    ) -> set[ConversationId]:
        """Return those of some conversations that have another epoch than `epochs` says."""
        if not ids:
            return set()
        known = _epochs_in(self.read_blocking(writer, ids))
        return {where for where in ids if known.get(where, 0) != epochs.get(where, 0)}

    def require_blocking(
        self, writer: Connection, conversation_id: ConversationId, epoch: int
    ) -> None:
        """Raise `LeaseLost` if a conversation has another epoch."""
        require_epoch(self.read_blocking(writer, [conversation_id]), conversation_id, epoch)


def require_epoch(leases: Rows, conversation_id: ConversationId, epoch: int) -> None:
    """Raise `LeaseLost` if a conversation has another epoch in what `Fence.read_blocking`
    returned.
    """
    if _epochs_in(leases).get(conversation_id, 0) != epoch:
        raise LeaseLost("Another server runs this conversation.")


def _epochs_in(leases: Rows) -> dict[ConversationId, int]:
    return {row["conversation_id"]: row["epoch"] for row in leases()}


class LeaseStore:
    """Nodes, and the leases that they hold. Leases go with their conversation."""

    def __init__(self, database: SqlDatabase, clock: Clock | None = None) -> None:
        self._database = database
        self._clock = clock or clock_of(database)

    async def join(self, node: Node, *, ttl_ms: int) -> None:
        """Add a node that is alive for `ttl_ms` from now; leases of its earlier incarnations end.

        It takes conversations again, if it was draining.
        """

        def work(writer: Connection) -> None:
            writer.execute(
                "INSERT INTO nodes (id, incarnation, url, secret, process, expires_at)"
                " VALUES (:id, :incarnation, :url, :secret, :process, :until)"
                " ON CONFLICT (id) DO UPDATE SET incarnation = excluded.incarnation,"
                " url = excluded.url, secret = excluded.secret, process = excluded.process,"
                " expires_at = excluded.expires_at, draining = 0",
                columns_of(node, until=self._clock(writer) + ttl_ms),
            )

        await self._database.write(work)

    async def beat(self, node: Node, *, ttl_ms: int) -> Beat:
        """Keep a node, and with it all its leases, alive for `ttl_ms` from now.

        A cut of the power may lose it.
        """

        def work(writer: Connection) -> Beat:
            now_ms = self._clock(writer)
            values = columns_of(node, until=now_ms + ttl_ms)
            found = writer.execute(
                "SELECT expires_at FROM nodes WHERE id = :id AND incarnation = :incarnation", values
            ).fetchall()
            writer.execute(
                "UPDATE nodes SET expires_at = :until"
                " WHERE id = :id AND incarnation = :incarnation",
                values,
            )
            if not found:
                return "gone"
            return "in_time" if found[0]["expires_at"] > now_ms else "late"

        return await self._database.write(work, is_synced=False)

    async def drain(self, node: Node, *, keep: Collection[ConversationId]) -> None:
        """Mark a node as draining, and release everything it holds except `keep`."""

        def work(writer: Connection) -> None:
            writer.execute(
                "UPDATE nodes SET draining = 1 WHERE id = :id AND incarnation = :incarnation",
                columns_of(node),
            )
            writer.execute(
                f"{_RELEASE} AND conversation_id NOT IN {IN_IDS}",
                columns_of(node, ids=id_list(keep)),
            )

        await self._database.write(work)

    async def leave(self, node: Node) -> None:
        """Release all leases of a node and remove it; idempotent."""

        def work(writer: Connection) -> None:
            writer.execute(_RELEASE, columns_of(node))
            writer.execute(
                "DELETE FROM nodes WHERE id = :id AND incarnation = :incarnation", columns_of(node)
            )

        await self._database.write(work)

    async def take(self, node: Node, conversation_id: ConversationId) -> Lease | None:
        """Take a conversation that no living node holds; return a lease that the node has already.

        None if a living node has it, there is no such conversation, or `node` itself is draining or
        has left. A cut of the power may lose it, with what was written under it.
        """
        return await self._database.write(
            lambda writer: take_blocking(writer, node, conversation_id, self._clock(writer)),
            is_synced=False,
        )

    async def take_unfinished(self, node: Node, *, released_only: bool = False) -> Sequence[Lease]:
        """Take all conversations with queued or running turns that no living node holds; with
        `released_only` those that their last owner has released or let go.
        """

        def work(writer: Connection) -> list[Lease]:
            values = columns_of(node, now=self._clock(writer))
            rows = writer.execute(
                f"SELECT conversation_id FROM leases WHERE {_WAS_LET_GO}"  # noqa: S608
                f" AND conversation_id IN {_UNFINISHED}"
            ).fetchall()
            let_go = {row["conversation_id"] for row in rows}
            take = _TAKE_RELEASED if released_only else _TAKE_UNFINISHED
            return [
                read_value(Lease, row, was_let_go=row["conversation_id"] in let_go)
                for row in writer.execute(take, values).fetchall()
            ]

        return await self._database.write(work)

    async def release(self, node: Node, conversation_id: ConversationId) -> None:
        """End a lease that the node holds; its epoch stays. No error if it does not hold it."""
        await self._database.execute(
            f"{_RELEASE} AND conversation_id = :conversation_id",
            columns_of(node, conversation_id=conversation_id),
        )

    async def let_go(self, node: Node, conversation_id: ConversationId) -> None:
        """Do as `release` does, and have the next owner know that turns of it were cut off."""
        await self._database.execute(_LET_GO, columns_of(node, conversation_id=conversation_id))

    async def held(self, node: Node) -> Sequence[Lease]:
        """List the leases of a node, by conversation."""
        rows = await self._database.rows(f"{_MINE} ORDER BY conversation_id", columns_of(node))
        return [read_value(Lease, row) for row in rows]

    async def holder(self, conversation_id: ConversationId) -> Node | None:
        """Return the living node that holds a conversation; None if there is none."""

        def work(reader: Connection) -> list[Any]:
            return reader.execute(
                f"SELECT {_NODE} FROM leases JOIN nodes ON nodes.id = leases.node_id"  # noqa: S608
                " AND nodes.incarnation = leases.incarnation"
                " WHERE conversation_id = ? AND expires_at > ?",
                (conversation_id, self._clock(reader)),
            ).fetchall()

        found = await self._database.read(work)
        return read_value(Node, found[0]) if found else None

    async def living(self, *, takes_turns: bool = False) -> Sequence[Node]:
        """List the living nodes, by id; with `takes_turns` those that do not drain."""

        def work(reader: Connection) -> list[Any]:
            return reader.execute(
                f"SELECT {_NODE} FROM nodes"  # noqa: S608
                " WHERE expires_at > ? AND draining <= ? ORDER BY id",
                (self._clock(reader), 0 if takes_turns else 1),
            ).fetchall()

        return [read_value(Node, row) for row in await self._database.read(work)]

    async def note_settings(self, node: Node, settings: str) -> None:
        """Store what other nodes compare with their settings."""
        await self._database.execute(
            "UPDATE nodes SET settings = :settings WHERE id = :id AND incarnation = :incarnation",
            columns_of(node, settings=settings),
        )

    async def settings(self) -> Mapping[str, str]:
        """Return what the living nodes have noted of their settings, by URL."""

        def work(reader: Connection) -> list[Any]:
            return reader.execute(
                "SELECT url, settings FROM nodes"
                " WHERE expires_at > ? AND url IS NOT NULL AND settings IS NOT NULL ORDER BY url",
                (self._clock(reader),),
            ).fetchall()

        return {row["url"]: row["settings"] for row in await self._database.read(work)}

    async def lock(self, node: Node, name: str) -> bool:
        """Take a lock that no other living node has; return False if one has it. A cut of the power
        may lose it.
        """

        def work(writer: Connection) -> bool:
            values = columns_of(node, name=name, now=self._clock(writer))
            return bool(writer.execute(_LOCK, values).fetchall())

        return await self._database.write(work, is_synced=False)

    async def unlock(self, node: Node, name: str) -> None:
        """Release a lock. No error if the node does not have it."""

        def work(writer: Connection) -> None:
            writer.execute(
                "DELETE FROM workspace_locks"
                " WHERE name = :name AND node_id = :id AND incarnation = :incarnation",
                columns_of(node, name=name),
            )

        await self._database.write(work, is_synced=False)

    async def bury(self, node: Node) -> None:
        """Note that a node's process has ended: what it holds can be taken at once."""
        await self._database.execute(
            "UPDATE nodes SET expires_at = 0 WHERE id = :id AND incarnation = :incarnation",
            columns_of(node),
        )
