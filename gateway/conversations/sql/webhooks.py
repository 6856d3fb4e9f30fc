"""Webhooks and their deliveries in SQLite; triggers of the schema add the deliveries."""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from gateway.conversations.sql.rows import readable
from gateway.conversations.webhooks import (
    MAX_REPLY_CHARS,
    SECRET_CHARS,
    Webhook,
    WebhookDelivery,
    WebhookMessage,
    WebhookState,
)
from gateway.ids import UserId
from gateway.jsonsafe import json_text
from memory.clock import from_rfc3339, rfc3339
from memory.stores.database import Connection, SqlDatabase, decoding_rows
from memory.stores.sqlite.row_values import Row, columns_of, read_value

_SWITCHED_OFF = "The webhook was switched off."
_HURRY = (
    "UPDATE webhook_deliveries"
    " SET due_at = CASE WHEN queued_at < :now THEN queued_at ELSE :now END"  # in their order
    " WHERE status = 'pending' AND due_at > :now AND (attempts = 0 OR due_at > :latest)"
)
_NEVER = "9"
"""Later than all times."""
_MESSAGE = (
    "SELECT w.url, w.secret, a.name, a.summary, json_extract(t.result, '$.outcome') AS outcome,"  # noqa: S608
    f" substr(json_extract(t.result, '$.reply'), 1, {MAX_REPLY_CHARS + 1}) AS reply"
    " FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id AND w.state = 'on'"
    " LEFT JOIN turns t ON t.id = d.turn_id AND d.type = 'turn.completed' AND json_valid(t.result)"
    " LEFT JOIN approvals a ON a.id = d.approval_id WHERE d.seq = ?"
)
_delivery_of = partial(read_value, WebhookDelivery)
_message_of = partial(read_value, WebhookMessage)


class WebhookStore:
    """Webhooks and their deliveries. A delivery goes with its webhook, and with its conversation.

    As a queue, a receiver is the id of a webhook.
    """

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def serve(self, now: datetime, *, is_on: bool, is_shared: bool = False) -> None:
        """Prepare for a start: add deliveries from here on, or none if not `is_on`.

        Does what `release` does, unless other servers use the database.
        """

        def work(writer: Connection) -> None:
            writer.execute(
                "UPDATE webhooks SET is_served = :on WHERE is_served != :on", {"on": is_on}
            )
            if not is_shared:
                writer.execute(_HURRY, {"now": rfc3339(now), "latest": _NEVER})

        await self._database.write(work)

    async def release(self, now: datetime) -> None:
        """Make untried deliveries due that are leased, or were stored by a server whose clock is
        ahead.
        """
        values = {"now": rfc3339(now), "latest": _NEVER}
        await self._database.execute(_HURRY, values, is_synced=False)

    async def hurry(self, now: datetime, *, latest: datetime) -> None:
        """Do as `release` does, and make tried deliveries due that are due after `latest`."""
        values = {"now": rfc3339(now), "latest": rfc3339(latest)}
        await self._database.execute(_HURRY, values, is_synced=False)

    async def add(self, webhook: Webhook, secret: str, *, most: int) -> bool:
        """Store a webhook; return False, and change nothing, if its user has `most`."""
        row = columns_of(webhook, events=json_text(webhook.events), secret=secret, most=most)

        def work(writer: Connection) -> bool:
            added = writer.execute(
                "INSERT INTO webhooks (id, user_id, url, secret, events, state, created_at)"
                " SELECT :id, :user_id, :url, :secret, :events, :state, :created_at"
                " WHERE (SELECT count(*) FROM webhooks WHERE user_id = :user_id) < :most",
                row,
            )
            return added.rowcount > 0

        return await self._database.write(work)

    async def get(self, webhook_id: str, user_id: UserId) -> Webhook | None:
        """Return the webhook; None if there is none of that id or it is another user's."""
        sql = "SELECT * FROM webhooks WHERE id = ? AND user_id = ?"
        return await self._database.value(_webhook_of, sql, (webhook_id, user_id))

    async def listed(self, user_id: UserId) -> Sequence[Webhook]:
        """List a user's webhooks, oldest first. One that is damaged is left out."""
        sql = "SELECT * FROM webhooks WHERE user_id = ? ORDER BY created_at, rowid"
        rows = await self._database.rows(sql, (user_id,))
        return list(readable(rows, _webhook_of, "webhook"))

    async def secret_of(self, webhook_id: str) -> str | None:
        """Return what is kept as the secret; None if the webhook is gone."""
        secret: str | None = await self._database.scalar(
            "SELECT secret FROM webhooks WHERE id = ?", (webhook_id,)
        )
        return secret

    async def rotate(self, webhook_id: str, secret: str, until: datetime) -> None:
        """Put a secret before the one in use, which signs until then, too; an earlier one is gone.

        No error if the webhook is gone.
        """
        await self._database.execute(
            "UPDATE webhooks SET secret ="
            " :secret || ' ' || substr(secret, 1, :chars) || ' ' || :until WHERE id = :id",
            {
                "secret": secret,
                "chars": SECRET_CHARS,
                "until": rfc3339(until),
                "id": webhook_id,
            },
        )

    async def switch(self, webhook_id: str, state: WebhookState) -> None:
        """Set the state; deliveries that wait become dead unless it is `on`."""

        def work(writer: Connection) -> None:
            writer.execute("UPDATE webhooks SET state = ? WHERE id = ?", (state, webhook_id))
            if state != "on":
                writer.execute(
                    "UPDATE webhook_deliveries SET status = 'dead',"
                    " last_error = coalesce(last_error, ?)"
                    " WHERE webhook_id = ? AND status = 'pending'",
                    (_SWITCHED_OFF, webhook_id),
                )

        await self._database.write(work)

    async def delete(self, webhook_id: str) -> None:
        """Delete a webhook with its deliveries; no error if it is gone."""
        await self._database.execute("DELETE FROM webhooks WHERE id = ?", (webhook_id,))

    async def deliveries(self, webhook_id: str, *, limit: int) -> Sequence[WebhookDelivery]:
        """List a webhook's deliveries, newest first. One that is damaged is left out."""
        sql = "SELECT * FROM webhook_deliveries WHERE webhook_id = ? ORDER BY seq DESC LIMIT ?"
        rows = await self._database.rows(sql, (webhook_id, limit))
        return list(readable(rows, _delivery_of, "delivery"))

    async def retry(
        self, webhook_id: str, delivery_id: str, now: datetime
    ) -> WebhookDelivery | None:
        """Make a delivery that was not made due now, as if it were new; return it as it is then.

        None if the webhook has none of that id.
        """
        which = {"now": rfc3339(now), "id": delivery_id, "webhook": webhook_id}

        def work(writer: Connection) -> WebhookDelivery | None:
            writer.execute(
                "UPDATE webhook_deliveries SET status = 'pending', attempts = 0, due_at = :now,"
                " queued_at = :now"
                " WHERE id = :id AND webhook_id = :webhook AND status != 'delivered'",
                which,
            )
            row = writer.execute(
                "SELECT * FROM webhook_deliveries WHERE id = :id AND webhook_id = :webhook", which
            ).fetchone()
            return None if row is None else _delivery_of(row)

        return await self._database.write(work)

    async def message(self, delivery: WebhookDelivery) -> WebhookMessage | None:
        """Return what to send; None if the webhook is not on, or the delivery is gone."""
        return await self._database.value(_message_of, _MESSAGE, (delivery.seq,))

    async def due(
        self, receiver: str, now: datetime, *, limit: int, until: datetime
    ) -> Sequence[WebhookDelivery]:

        def work(writer: Connection) -> list[WebhookDelivery]:
            rows = writer.execute(
                "SELECT * FROM webhook_deliveries WHERE webhook_id = ? AND status = 'pending'"
                " AND due_at <= ? ORDER BY due_at, seq LIMIT ?",
                (receiver, rfc3339(now), limit),
            ).fetchall()
            writer.executemany(
                "UPDATE webhook_deliveries SET due_at = ? WHERE seq = ?",
                [(rfc3339(until), row["seq"]) for row in rows],
            )
            return [_delivery_of(row) for row in rows]

        return await self._database.write(work, is_synced=False)

    async def delivered(self, delivery: WebhookDelivery, now: datetime) -> None:
        """Note a success."""
        await self._database.execute(
            "UPDATE webhook_deliveries SET status = 'delivered', delivered_at = ?,"
            " last_error = NULL, attempts = attempts + 1 WHERE seq = ?",
            (rfc3339(now), delivery.seq),
            is_synced=False,
        )

    async def failed(
        self, delivery: WebhookDelivery, error: str, now: datetime, *, due_at: datetime | None
    ) -> None:
        status = "dead" if due_at is None else "pending"
        await self._database.execute(
            "UPDATE webhook_deliveries SET status = ?, attempts = attempts + 1, last_error = ?,"
            " due_at = ? WHERE seq = ? AND status != 'delivered'",
            (status, error, rfc3339(due_at or now), delivery.seq),
        )

    async def postpone(self, delivery: WebhookDelivery, *, due_at: datetime) -> None:
        await self._database.execute(
            "UPDATE webhook_deliveries SET due_at = ? WHERE seq = ? AND status = 'pending'",
            (rfc3339(due_at), delivery.seq),
            is_synced=False,
        )

    async def receivers_due(self, now: datetime) -> Sequence[str]:
        """Return the webhooks for which a delivery is due."""
        rows = await self._database.rows(
            "SELECT DISTINCT webhook_id FROM webhook_deliveries"
            " WHERE status = 'pending' AND due_at <= ?",
            (rfc3339(now),),
        )
        return [row["webhook_id"] for row in rows]

    async def next_due_at(self, after: datetime) -> datetime | None:
        """Return when the first delivery after a moment is due; None if none waits."""
        at = await self._database.scalar(
            "SELECT min(due_at) FROM webhook_deliveries WHERE status = 'pending' AND due_at > ?",
            (rfc3339(after),),
        )
        return None if at is None else from_rfc3339(at)

    async def prune(self, before: datetime) -> None:
        """Delete made and dead deliveries of events before a moment."""
        await self._database.execute(
            "DELETE FROM webhook_deliveries WHERE status != 'pending' AND created_at < ?",
            (rfc3339(before),),
            is_synced=False,
        )


@decoding_rows()
def _webhook_of(row: Row) -> Webhook:
    return read_value(Webhook, row, events=tuple(json.loads(row["events"])))
