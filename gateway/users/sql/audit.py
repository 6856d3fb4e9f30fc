"""The audit log in SQLite."""

import json
from collections.abc import Sequence
from datetime import datetime

from gateway.jsonsafe import json_text
from gateway.users.model import Act, Action, AuditEntry
from memory.clock import rfc3339
from memory.stores.database import Connection, SqlDatabase, decoding_rows
from memory.stores.sqlite.row_values import Row, columns_of, read_value
from memory.stores.sqlite.statements import insert_blocking

_PRUNE = (
    "DELETE FROM audit WHERE at < :before OR action = 'sign_in.refused' AND seq <="
    " (SELECT seq FROM audit WHERE action = 'sign_in.refused' ORDER BY seq DESC"
    " LIMIT 1 OFFSET :refused)"
)


def record_blocking(
    writer: Connection, act: Act, action: Action, subject: str, **details: str
) -> None:
    """Append an entry in the transaction of what it is about."""
    entry = AuditEntry(at=act.at, actor=act.by, action=action, subject=subject, details=details)
    add_blocking(writer, entry)


def add_blocking(writer: Connection, entry: AuditEntry) -> None:
    """Append an entry."""
    row = columns_of(entry, details=json_text(entry.details))
    del row["seq"]
    insert_blocking(writer, "audit", row)


class AuditLog:
    """Who did what, in the order in which it was stored. No entry can be changed."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def add(self, entry: AuditEntry) -> None:
        """Append an entry; its `seq` is given by the store."""
        await self._database.write(lambda writer: add_blocking(writer, entry))

    async def page(
        self, *, limit: int, before: int | None = None, actor: str | None = None
    ) -> Sequence[AuditEntry]:
        """List entries, the latest first; `before` is the `seq` of the last one of the page before.

        With `actor` those of one actor alone.
        """
        return await self._database.values(
            _entry_of,
            "SELECT * FROM audit WHERE seq < coalesce(:before, 9223372036854775807)"
            " AND actor = coalesce(:actor, actor) ORDER BY seq DESC LIMIT :limit",
            {"before": before, "actor": actor, "limit": limit},
        )

    async def prune(self, before: datetime, *, refused: int) -> int:
        """Delete entries older than a moment, and of refused sign-ins all but the latest `refused`;
        return how many were deleted.

        Refused sign-ins, which strangers can cause, never displace other entries.
        """
        values = {"before": rfc3339(before), "refused": refused}
        return await self._database.write(lambda writer: writer.execute(_PRUNE, values).rowcount)


@decoding_rows()
def _entry_of(row: Row) -> AuditEntry:
    return read_value(AuditEntry, row, details=json.loads(row["details"]))
