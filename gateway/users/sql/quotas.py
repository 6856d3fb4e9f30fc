"""Quotas of users in SQLite; `gateway.conversations.sql.quotas` reads them for turns."""

from collections.abc import Mapping

from gateway.conversations.model import QuotaLimit
from gateway.conversations.sql.quotas import OWN_LIMITS, limit_of
from gateway.ids import UserId
from gateway.users.model import Act, plain_number
from gateway.users.sql.audit import record_blocking
from memory.stores.database import Connection, SqlDatabase


class QuotaStore:
    """The limits that users have instead of everybody's. A user need not be in `UserStore`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def own(self, user_id: UserId) -> Mapping[QuotaLimit, float | None]:
        """Return a user's own limits; None: there is no limit."""
        rows = await self._database.rows(OWN_LIMITS, (user_id,))
        return {row["name"]: limit_of(row) for row in rows}

    async def set(self, user_id: UserId, limit: QuotaLimit, most: float | None, act: Act) -> None:
        """Set a limit of a user, which counts from the next turn on; `most` None: no limit."""

        def work(writer: Connection) -> None:
            writer.execute(
                "INSERT INTO user_quotas (user_id, name, most) VALUES (?, ?, ?)"
                " ON CONFLICT (user_id, name) DO UPDATE SET most = excluded.most",
                (user_id, limit, most),
            )
            told = "none" if most is None else plain_number(most)
            record_blocking(writer, act, "quota.changed", user_id, limit=limit, most=told)

        await self._database.write(work)

    async def reset(self, user_id: UserId, limit: QuotaLimit, act: Act) -> bool:
        """Apply everybody's limit to a user again; return False if it applies already."""

        def work(writer: Connection) -> bool:
            gone = writer.execute(
                "DELETE FROM user_quotas WHERE user_id = ? AND name = ?", (user_id, limit)
            )
            if gone.rowcount:
                record_blocking(writer, act, "quota.changed", user_id, limit=limit, most="default")
            return gone.rowcount > 0

        return await self._database.write(work)
