"""The outbox in SQLite: deliveries that wait, were made, or are given up."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from memory.clock import from_rfc3339, rfc3339
from memory.outbox.delivery import Delivery, DeliveryStatus, Link, NewDelivery
from memory.scope import WORKSPACE_OWNER
from memory.stores.sqlite.database import Database, understanding_rows

_COLUMNS: Final = (
    "id, backend, operation, item_id, owner_id, revision, idempotency_key, status, attempts,"
    " last_error, due_at, created_at, delivered_at"
)


def enqueue_blocking(
    connection: sqlite3.Connection, deliveries: Iterable[NewDelivery], now: datetime
) -> None:
    """Add deliveries within the transaction that changes their items; one that is there stays.

    What is older and has become needless goes: an earlier state of the item, and for a `forget` every
    `put` that still waits.
    """
    at = rfc3339(now)
    for one in deliveries:
        connection.execute(
            "DELETE FROM outbox WHERE item_id = ? AND backend = ? AND operation = 'put'"
            " AND status != 'delivered' AND (revision < ? OR ?)",
            (one.item_id, one.backend, one.revision, one.operation == "forget"),
        )
        connection.execute(
            "INSERT INTO outbox (backend, operation, item_id, owner_id, revision, idempotency_key,"
            " status, due_at, created_at) VALUES (?, ?, ?, ?, ?, ?, 'pending', ?, ?)"
            " ON CONFLICT (idempotency_key) DO NOTHING",
            (
                one.backend,
                one.operation,
                one.item_id,
                one.owner_id,
                one.revision,
                one.idempotency_key,
                at,
                at,
            ),
        )


def enqueue_again_blocking(
    connection: sqlite3.Connection, delivery: NewDelivery, now: datetime
) -> None:
    """Have an item delivered once more although it was: the backend has lost it."""
    connection.execute("DELETE FROM outbox WHERE idempotency_key = ?", (delivery.idempotency_key,))
    enqueue_blocking(connection, [delivery], now)


def withdraw_blocking(connection: sqlite3.Connection, item_id: str) -> int:
    """Take back every `put` of an item that was not made; returns how many."""
    return connection.execute(
        "DELETE FROM outbox WHERE item_id = ? AND operation = 'put' AND status != 'delivered'",
        (item_id,),
    ).rowcount


def backends_of_blocking(connection: sqlite3.Connection, item_id: str) -> Sequence[str]:
    """List the backends that have an item, or may have: one was told, or links to it."""
    rows = connection.execute(
        "SELECT backend FROM outbox WHERE item_id = ? AND operation = 'put'"
        " UNION SELECT backend FROM memory_links WHERE item_id = ? ORDER BY backend",
        (item_id, item_id),
    )
    return [row[0] for row in rows]


class SqliteOutboxStore:
    """Deliveries in the memory's database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(
        self, backend: str, now: datetime, *, limit: int, until: datetime
    ) -> Sequence[Delivery]:
        """Take due deliveries, oldest first; nobody else sees them before `until`."""
        at, then = rfc3339(now), rfc3339(until)

        def take(connection: sqlite3.Connection) -> list[Delivery]:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM outbox WHERE backend = ? AND status = 'pending'"  # noqa: S608
                " AND due_at <= ? ORDER BY due_at, id LIMIT ?",
                (backend, at, limit),
            ).fetchall()
            connection.executemany(
                "UPDATE outbox SET due_at = ? WHERE id = ?", [(then, row["id"]) for row in rows]
            )
            return [_delivery_of(row) for row in rows]

        return await self._database.write(take)

    async def delivered(
        self, delivery: Delivery, links: Sequence[Link] | None, now: datetime
    ) -> None:
        """Note a success and what came of it, in place of what came before; None: that stays.

        Of a delivery that does not wait any more, what came of it is noted alone.
        """

        def note(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE outbox SET status = 'delivered', delivered_at = ?, last_error = NULL,"
                " attempts = attempts + 1 WHERE id = ? AND status = 'pending'",
                (rfc3339(now), delivery.id),
            )
            if links is not None:
                _link_blocking(connection, delivery, links)

        await self._database.write(note)

    async def begun(self, delivery: Delivery, links: Sequence[Link]) -> None:
        """Note what a try has begun at the backend, in place of what came before; it is not made yet."""
        await self._database.write(lambda connection: _link_blocking(connection, delivery, links))

    async def failed(
        self, delivery: Delivery, error: str, now: datetime, *, due_at: datetime | None
    ) -> None:
        """Note a failure; tried again at `due_at`, or dead where that is None."""
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE outbox SET status = ?, attempts = attempts + 1, last_error = ?, due_at = ?"
                " WHERE id = ? AND status = 'pending'",
                (
                    "dead" if due_at is None else "pending",
                    error,
                    rfc3339(due_at or now),
                    delivery.id,
                ),
            )
        )

    async def postpone(self, delivery: Delivery, *, due_at: datetime) -> None:
        """Give a delivery back untried, due at a moment."""
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE outbox SET due_at = ? WHERE id = ? AND status = 'pending'",
                (rfc3339(due_at), delivery.id),
            )
        )

    async def release(self, backend: str, now: datetime) -> None:
        """Make due what was leased and never tried to the end; for a start, when no taker is left."""
        at = rfc3339(now)
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE outbox SET due_at = ? WHERE backend = ? AND status = 'pending'"
                " AND attempts = 0 AND due_at > ?",
                (at, backend, at),
            )
        )

    async def next_due_at(self, backend: str) -> datetime | None:
        """Tell when the next delivery is due; None: none waits."""
        row = await self._database.row(
            "SELECT min(due_at) AS at FROM outbox WHERE backend = ? AND status = 'pending'",
            (backend,),
        )
        return None if row is None or row["at"] is None else from_rfc3339(row["at"])

    async def page(
        self,
        owner_id: str,
        status: DeliveryStatus | None,
        *,
        limit: int,
        before_id: int | None = None,
    ) -> Sequence[Delivery]:
        """List the deliveries of what an owner reads, newest first."""
        return await self._database.values(
            _delivery_of,
            f"SELECT {_COLUMNS} FROM outbox WHERE owner_id IN (?, ?)"  # noqa: S608
            " AND (? IS NULL OR status = ?) AND (? IS NULL OR id < ?) ORDER BY id DESC LIMIT ?",
            (owner_id, WORKSPACE_OWNER, status, status, before_id, before_id, limit),
        )

    async def retry(self, delivery_id: int, owner_id: str, now: datetime) -> Delivery | None:
        """Make a dead or pending delivery due now, its attempts forgotten; None: no such one."""

        def again(connection: sqlite3.Connection) -> Delivery | None:
            connection.execute(
                "UPDATE outbox SET status = 'pending', attempts = 0, due_at = ?"
                " WHERE id = ? AND owner_id IN (?, ?) AND status != 'delivered'",
                (rfc3339(now), delivery_id, owner_id, WORKSPACE_OWNER),
            )
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM outbox WHERE id = ? AND owner_id IN (?, ?)",  # noqa: S608
                (delivery_id, owner_id, WORKSPACE_OWNER),
            ).fetchone()
            return None if row is None else _delivery_of(row)

        return await self._database.write(again)

    async def links_of(self, item_id: str) -> Sequence[Link]:
        """List what backends made of an item."""
        rows = await self._database.rows(
            "SELECT item_id, backend, remote_kind, remote_id FROM memory_links WHERE item_id = ?"
            " ORDER BY backend, remote_kind, remote_id",
            (item_id,),
        )
        return [Link(**dict(row)) for row in rows]

    async def lag_s(self, backend: str, now: datetime) -> float:
        """Tell the age of the oldest pending delivery; 0 where none waits."""
        row = await self._database.row(
            "SELECT min(created_at) AS at FROM outbox WHERE backend = ? AND status = 'pending'",
            (backend,),
        )
        if row is None or row["at"] is None:
            return 0.0
        return max(0.0, (now - from_rfc3339(row["at"])).total_seconds())

    async def count(self, backend: str, status: DeliveryStatus) -> int:
        """Count a backend's deliveries in a status."""
        row = await self._database.row(
            "SELECT count(*) AS n FROM outbox WHERE backend = ? AND status = ?", (backend, status)
        )
        return 0 if row is None else int(row["n"])


def _link_blocking(
    connection: sqlite3.Connection, delivery: Delivery, links: Sequence[Link]
) -> None:
    """Replace an item's links to a backend.

    Also those of one that was withdrawn meanwhile: what is to be forgotten must be known.
    """
    connection.execute(
        "DELETE FROM memory_links WHERE item_id = ? AND backend = ?",
        (delivery.item_id, delivery.backend),
    )
    connection.executemany(
        "INSERT OR IGNORE INTO memory_links (item_id, backend, remote_kind, remote_id)"
        " VALUES (?, ?, ?, ?)",
        [(one.item_id, one.backend, one.remote_kind, one.remote_id) for one in links],
    )


@understanding_rows()
def _delivery_of(row: Mapping[str, Any] | sqlite3.Row) -> Delivery:
    return Delivery(
        id=row["id"],
        backend=row["backend"],
        operation=row["operation"],
        item_id=row["item_id"],
        owner_id=row["owner_id"],
        revision=row["revision"],
        idempotency_key=row["idempotency_key"],
        status=row["status"],
        attempts=row["attempts"],
        last_error=row["last_error"],
        due_at=from_rfc3339(row["due_at"]),
        created_at=from_rfc3339(row["created_at"]),
        delivered_at=None if row["delivered_at"] is None else from_rfc3339(row["delivered_at"]),
    )
