"""Sessions of browsers, and sign-ins on their way, in SQLite."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from gateway.jsonsafe import json_text
from gateway.users.model import Act, Session, User
from gateway.users.sql.audit import record_blocking
from memory.clock import rfc3339
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.row_values import columns_of, read_value
from memory.stores.sqlite.statements import insert_blocking

_HOLDER = (
    "SELECT users.* FROM sessions JOIN users ON users.id = sessions.user_id"
    " WHERE sessions.digest = ? AND sessions.expires_at > ? AND users.disabled_at IS NULL"
)


class SessionStore:
    """Sessions of browsers, and sign-ins that are on their way through a provider."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def begin(
        self, digest: str, data: Mapping[str, str], *, at: datetime, expires_at: datetime
    ) -> None:
        """Keep what the answer of a sign-in must match, until it comes or expires.

        `digest` is that of its state. Expired ones are deleted. Raise `StoreConflict` if it is
        taken.
        """

        def work(writer: Connection) -> None:
            writer.execute("DELETE FROM sign_ins WHERE expires_at <= ?", (rfc3339(at),))
            row = {"digest": digest, "data": json_text(data), "expires_at": rfc3339(expires_at)}
            insert_blocking(writer, "sign_ins", row)

        await self._database.write(work)

    async def take(self, digest: str, at: datetime) -> Mapping[str, str] | None:
        """Return what was kept for a sign-in, once; None if there is none, or it has expired."""

        def work(writer: Connection) -> Mapping[str, str] | None:
            rows = writer.execute(
                "DELETE FROM sign_ins WHERE digest = ? RETURNING data, expires_at", (digest,)
            ).fetchall()
            is_due = bool(rows) and rows[0]["expires_at"] > rfc3339(at)
            return json.loads(rows[0]["data"]) if is_due else None

        return await self._database.write(work)

    async def start(self, session: Session, digest: str, act: Act) -> None:
        """Start a session; `digest` is that of its secret. Expired ones are deleted.

        Raise `StoreConflict` if there is no such user.
        """

        def work(writer: Connection) -> None:
            writer.execute("DELETE FROM sessions WHERE expires_at <= ?", (rfc3339(act.at),))
            insert_blocking(writer, "sessions", columns_of(session) | {"digest": digest})
            record_blocking(writer, act, "sign_in.done", session.id)

        await self._database.write(work)

    async def holder(self, digest: str, at: datetime) -> User | None:
        """Return the user of a session; None if there is none, it has ended or expired, or the user
        is disabled.
        """
        values = (digest, rfc3339(at))
        return await self._database.value(lambda row: read_value(User, row), _HOLDER, values)

    async def end(self, digest: str, act: Act) -> bool:
        """End a session; return False if there is none."""

        def work(writer: Connection) -> bool:
            ended = writer.execute(
                "DELETE FROM sessions WHERE digest = ? RETURNING id", (digest,)
            ).fetchall()
            for row in ended:
                record_blocking(writer, act, "sign_out", row["id"])
            return bool(ended)

        return await self._database.write(work)

    async def live(self, at: datetime) -> Sequence[str]:
        """Return the ids of the sessions that have not expired, in their order."""
        rows = await self._database.rows(
            "SELECT id FROM sessions WHERE expires_at > ? ORDER BY id", (rfc3339(at),)
        )
        return [row["id"] for row in rows]
