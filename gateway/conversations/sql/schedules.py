"""Schedules in SQLite."""

import json
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime

from gateway.conversations.schedules import Schedule
from gateway.conversations.sql.rows import readable
from gateway.ids import UserId
from gateway.jsonsafe import json_text
from memory.clock import from_rfc3339, rfc3339
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.row_values import Row, columns_of, read_value

_NAMES = [field.name for field in fields(Schedule)]
_CHANGED = [name for name in _NAMES if name != "revision"]
_ADD = (
    f"INSERT INTO schedules ({', '.join(_NAMES)})"  # noqa: S608
    f" SELECT {', '.join(f':{name}' for name in _NAMES)}"
    " WHERE (SELECT count(*) FROM schedules WHERE user_id = :user_id) < :limit RETURNING id"
)
_PUT = (
    f"UPDATE schedules SET {', '.join(f'{name} = :{name}' for name in _CHANGED)},"  # noqa: S608
    " revision = revision + 1"
    " WHERE id = :id AND user_id = :user_id AND revision = :revision AND NOT (:enabled = 1"
    " AND CAST(:conversation_id AS TEXT) IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM conversations WHERE id = :conversation_id)) RETURNING id"
)


def _schedule_of(row: Row) -> Schedule:
    return read_value(Schedule, row, problem=row["problem"] and json.loads(row["problem"]))


def _row_of(schedule: Schedule, **more: int) -> dict[str, object]:
    problem = None if schedule.problem is None else json_text(schedule.problem)
    return columns_of(schedule, problem=problem, **more)


class ScheduleStore:
    """Schedules of all users. One whose conversation is deleted is switched off."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def add(self, schedule: Schedule, *, limit: int) -> bool:
        """Store a schedule; return False, and store nothing, if its user has `limit` already."""

        def work(writer: Connection) -> bool:
            return bool(writer.execute(_ADD, _row_of(schedule, limit=limit)).fetchall())

        return await self._database.write(work)

    async def get(self, user_id: UserId, schedule_id: str) -> Schedule | None:
        """Return the schedule; None if there is none of that id, or it is another user's."""
        return await self._database.value(
            _schedule_of,
            "SELECT * FROM schedules WHERE id = ? AND user_id = ?",
            (schedule_id, user_id),
        )

    async def listed(self, user_id: UserId) -> Sequence[Schedule]:
        """List a user's schedules, oldest first."""
        rows = await self._database.rows(
            "SELECT * FROM schedules WHERE user_id = ? ORDER BY seq", (user_id,)
        )
        return list(readable(rows, _schedule_of, "schedule"))

    async def put(self, schedule: Schedule) -> bool:
        """Change a schedule, whose revision rises by one.

        Return False, and change nothing, if it is gone or has another revision, or its conversation
        is gone and it is on.
        """

        def work(writer: Connection) -> bool:
            return bool(writer.execute(_PUT, _row_of(schedule)).fetchall())

        return await self._database.write(work)

    async def delete(self, user_id: UserId, schedule_id: str) -> bool:
        """Delete a user's schedule; return False if there is none of that id."""

        def work(writer: Connection) -> bool:
            gone = writer.execute(
                "DELETE FROM schedules WHERE id = ? AND user_id = ?", (schedule_id, user_id)
            )
            return gone.rowcount > 0

        return await self._database.write(work)

    async def due(self, now: datetime) -> Sequence[Schedule]:
        """List the schedules that are due, of all users, the longest due first."""
        rows = await self._database.rows(
            "SELECT * FROM schedules WHERE due_at <= ? ORDER BY due_at, seq", (rfc3339(now),)
        )
        return list(readable(rows, _schedule_of, "schedule"))

    async def later(self, after: datetime) -> Sequence[Schedule]:
        """List the schedules that are due after a moment, of all users, in the order of `due`."""
        rows = await self._database.rows(
            "SELECT * FROM schedules WHERE due_at > ? ORDER BY due_at, seq", (rfc3339(after),)
        )
        return list(readable(rows, _schedule_of, "schedule"))

    async def next_due(self, after: datetime) -> datetime | None:
        """Return the first due time after a moment; None if there is none."""
        text = await self._database.scalar(
            "SELECT min(due_at) FROM schedules WHERE due_at > ?", (rfc3339(after),)
        )
        return None if text is None else from_rfc3339(text)
