"""The store of the outbox: deliveries that wait, were made, or were given up."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Final

from memory.clock import from_rfc3339, rfc3339
from memory.items.item import Item
from memory.items.scope import WORKSPACE_OWNER
from memory.outbox.delivery import Delivery, DeliveryStatus, Link, NewDelivery, deliveries_of
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.row_values import read_value
from memory.stores.sqlite.statements import insert_blocking

_COLUMNS: Final = (
    "id, backend, operation, item_id, owner_id, revision, idempotency_key, status, attempts,"
    " last_error, due_at, created_at, delivered_at"
)


def enqueue_blocking(
    connection: Connection, deliveries: Iterable[NewDelivery], now: datetime
) -> None:
    """Add deliveries within the transaction that changes their items; skip those that are there.

    Removes what became needless: a delivery of an earlier state, and for a `forget` every waiting
    `put`.
    """
    at = rfc3339(now)
    for new in deliveries:
        connection.execute(
            "DELETE FROM outbox WHERE item_id = ? AND backend = ? AND operation = 'put'"
            " AND status != 'delivered' AND (revision < ? OR ? = 1)",
            (new.item_id, new.backend, new.revision, new.operation == "forget"),
        )
        row = asdict(new) | {
            "idempotency_key": new.idempotency_key,
            "status": "pending",
            "due_at": at,
            "created_at": at,
        }
        insert_blocking(connection, "outbox", row, "ON CONFLICT (idempotency_key) DO NOTHING")


def enqueue_again_blocking(
    connection: Connection, deliveries: Sequence[NewDelivery], now: datetime
) -> None:
    """Add deliveries even if they were made before: the backend may have lost what it had."""
    connection.executemany(
        "DELETE FROM outbox WHERE idempotency_key = ?",
        [(new.idempotency_key,) for new in deliveries],
    )
    enqueue_blocking(connection, deliveries, now)


def deliver_item_blocking(
    connection: Connection, item: Item, backends: Iterable[str], now: datetime
) -> None:
    """Enqueue an item for each backend, within the transaction that writes it."""
    deliveries = deliveries_of("put", item.id, item.scope.owner_id, item.revision, backends)
    enqueue_again_blocking(connection, deliveries, now)  # it may have been forgotten before


def backends_of_blocking(connection: Connection, item_id: str) -> Sequence[str]:
    """Return the backends that have an item, or may have it."""
    rows = connection.execute(
        "SELECT backend FROM outbox WHERE item_id = ? AND operation = 'put'"
        " UNION SELECT backend FROM memory_links WHERE item_id = ? ORDER BY backend",
        (item_id, item_id),
    )
    return [row[0] for row in rows]


class SqlOutboxStore:
    """Stores deliveries. They are enqueued in the transactions that change items."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def due(
        self, backend: str, now: datetime, *, limit: int, until: datetime
    ) -> Sequence[Delivery]:
        """See `DeliveryQueue.due`. A cut of the power may lose the lease."""

        def take(connection: Connection) -> list[Delivery]:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM outbox WHERE backend = ? AND status = 'pending'"  # noqa: S608
                " AND due_at <= ? ORDER BY due_at, id LIMIT ?",
                (backend, rfc3339(now), limit),
            ).fetchall()
            connection.executemany(
                "UPDATE outbox SET due_at = ? WHERE id = ?",
                [(rfc3339(until), row["id"]) for row in rows],
            )
            return [read_value(Delivery, row) for row in rows]

        return await self._database.write(take, is_synced=False)

    async def delivered(
        self, delivery: Delivery, links: Sequence[Link] | None, now: datetime
    ) -> None:
        """Note a success and replace the item's links; None keeps them.

        If the delivery waits no longer, only the links are stored.
        """

        def note(connection: Connection) -> None:
            connection.execute(
                "UPDATE outbox SET status = 'delivered', delivered_at = ?, last_error = NULL,"
                " attempts = attempts + 1 WHERE id = ? AND status = 'pending'",
                (rfc3339(now), delivery.id),
            )
            if links is not None:
                _link_blocking(connection, delivery, links)

        await self._database.write(note)

    async def begun(self, delivery: Delivery, links: Sequence[Link]) -> None:
        """Replace the item's links by those of work that was begun; the delivery still waits."""
        await self._database.write(lambda connection: _link_blocking(connection, delivery, links))

    async def failed(
        self, delivery: Delivery, error: str, now: datetime, *, due_at: datetime | None
    ) -> None:
        """See `DeliveryQueue.failed`. A cut of the power may lose it, and it is tried again."""
        status = "dead" if due_at is None else "pending"
        await self._database.execute(
            "UPDATE outbox SET status = ?, attempts = attempts + 1, last_error = ?, due_at = ?"
            " WHERE id = ? AND status = 'pending'",
            (status, error, rfc3339(due_at or now), delivery.id),
            is_synced=False,
        )

    async def postpone(self, delivery: Delivery, *, due_at: datetime) -> None:
        """See `DeliveryQueue.postpone`."""
        sql = "UPDATE outbox SET due_at = ? WHERE id = ? AND status = 'pending'"
        await self._database.execute(sql, (rfc3339(due_at), delivery.id), is_synced=False)

    async def release(self, backend: str, now: datetime, *, latest: datetime) -> None:
        """Make leased and untried deliveries due, and tried ones that are due after `latest`, while
        no worker makes one.
        """
        await self._database.execute(
            "UPDATE outbox SET due_at = :now WHERE backend = :backend AND status = 'pending'"
            " AND due_at > :now AND (attempts = 0 OR due_at > :latest)",
            {"now": rfc3339(now), "backend": backend, "latest": rfc3339(latest)},
            is_synced=False,
        )

    async def next_due_at(self, backend: str) -> datetime | None:
        """Return when the next delivery is due; None if none waits."""
        return await self._earliest("due_at", backend)

    async def page(
        self,
        owner_id: str,
        status: DeliveryStatus | None,
        *,
        limit: int,
        before_id: int | None = None,
    ) -> Sequence[Delivery]:
        """Return deliveries of items that the owner may read, newest first."""
        return await self._database.values(
            partial(read_value, Delivery),
            f"SELECT {_COLUMNS} FROM outbox WHERE owner_id IN (?, ?)"  # noqa: S608
            " AND (CAST(? AS TEXT) IS NULL OR status = ?)"
            " AND (CAST(? AS BIGINT) IS NULL OR id < ?) ORDER BY id DESC LIMIT ?",
            (owner_id, WORKSPACE_OWNER, status, status, before_id, before_id, limit),
        )

    async def retry(self, delivery_id: int, owner_id: str, now: datetime) -> Delivery | None:
        """Make a dead or pending delivery due now and reset its attempts; None if the owner has
        none such.
        """
        whose = (delivery_id, owner_id, WORKSPACE_OWNER)

        def again(connection: Connection) -> Delivery | None:
            connection.execute(
                "UPDATE outbox SET status = 'pending', attempts = 0, due_at = ?"
                " WHERE id = ? AND owner_id IN (?, ?) AND status != 'delivered'",
                (rfc3339(now), *whose),
            )
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM outbox WHERE id = ? AND owner_id IN (?, ?)",  # noqa: S608
                whose,
            ).fetchone()
            return None if row is None else read_value(Delivery, row)

        return await self._database.write(again)

    async def links_of(self, item_id: str) -> Sequence[Link]:
        """Return the links of an item to backends."""
        rows = await self._database.rows(
            "SELECT item_id, backend, remote_kind, remote_id FROM memory_links WHERE item_id = ?"
            " ORDER BY backend, remote_kind, remote_id",
            (item_id,),
        )
        return [Link(**dict(row)) for row in rows]

    async def lag_s(self, backend: str, now: datetime) -> float:
        """Return the age of the oldest pending delivery; 0 if none waits."""
        oldest = await self._earliest("created_at", backend)
        return 0.0 if oldest is None else max(0.0, (now - oldest).total_seconds())

    async def _earliest(self, column: str, backend: str) -> datetime | None:
        sql = f"SELECT min({column}) FROM outbox WHERE backend = ? AND status = 'pending'"  # noqa: S608
        at = await self._database.scalar(sql, (backend,))
        return None if at is None else from_rfc3339(at)


def _link_blocking(connection: Connection, delivery: Delivery, links: Sequence[Link]) -> None:
    """Replace an item's links to a backend.

    Links of a withdrawn delivery are kept, too: what a backend has must be known to be forgotten.
    """
    connection.execute(
        "DELETE FROM memory_links WHERE item_id = ? AND backend = ?",
        (delivery.item_id, delivery.backend),
    )
    for link in links:
        insert_blocking(connection, "memory_links", asdict(link), "ON CONFLICT DO NOTHING")
