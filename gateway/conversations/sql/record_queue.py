"""Changes of turns for memory's record, in SQLite; triggers note them."""

import json
import logging
from collections.abc import Sequence
from typing import Final

from gateway.conversations.store import QueuedChange
from memory.clock import from_rfc3339
from memory.record.index import TurnChange
from memory.record.turn_item import RecordedTurn
from memory.stores.database import Row, SqlDatabase

_log = logging.getLogger(__name__)

_LABELS: Final = ("project_id", "app_code", "environment")
_ANSWERED: Final = frozenset({"answered", "answered_with_failures"})
"""Outcomes whose reply is the model's; the words of the others are the gateway's."""
_CHANGES: Final = (
    "SELECT r.seq AS change_seq, r.turn_id AS changed_id,"
    " NOT EXISTS (SELECT 1 FROM turns x WHERE x.id = r.turn_id) AS is_deleted,"
    " c.id AS conversation_id, c.user_id, c.project_id, c.app_code, c.environment,"
    " t.seq AS position, t.created_at, t.message, t.result, t.copy_of"
    " FROM record_changes r"
    " LEFT JOIN turns t ON t.id = r.turn_id AND t.state = 'completed' AND t.kept_out = 0"
    " AND t.started_at IS NOT NULL"
    # of a turn and its copies, the oldest one that is left
    " AND (t.copy_of IS NULL OR NOT EXISTS (SELECT 1 FROM turns o WHERE o.id = t.copy_of"
    " OR o.copy_of = t.copy_of AND o.rowid < t.rowid))"
    " LEFT JOIN conversations c ON c.id = t.conversation_id AND c.memory_enabled = 1"
    " WHERE r.seq > :after AND (:only_copies = 0 OR t.copy_of IS NOT NULL) AND (:only_deleted = 0"
    " OR NOT EXISTS (SELECT 1 FROM turns x WHERE x.id = r.turn_id))"
    " ORDER BY r.seq DESC LIMIT :limit"
)
_ANY: Final = "SELECT 1 FROM record_changes WHERE seq > ? LIMIT 1"
"""PostgreSQL plans `_CHANGES` anew each time, which takes longer than this."""
_LAST_SEQ: Final = {
    "sqlite": "SELECT seq FROM sqlite_sequence WHERE name = 'record_changes'",
    "postgresql": "SELECT pg_sequence_last_value("
    "CAST(pg_get_serial_sequence('record_changes', 'seq') AS REGCLASS))",
}
"""Also if that change is there no more."""


class RecordQueue:
    """Turns that ended, changed or went since memory's record was brought up to date.

    They are noted in the transaction that changes them. A turn that a fork copied is there once.
    """

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def last_seq(self) -> int:
        """Return the `seq` of the last change that was ever noted; 0 if there was none."""
        return int(await self._database.scalar(_LAST_SEQ[self._database.engine]) or 0)

    async def newest(
        self,
        *,
        after: int = 0,
        only_deleted: bool = False,
        only_copies: bool = False,
        limit: int,
    ) -> Sequence[QueuedChange]:
        """List changes with a higher `seq`, newest first, each with its turn as it is now.

        `only_copies`: of copies that take the place of a deleted turn.
        """
        if self._database.engine != "sqlite" and not await self._database.row(_ANY, (after,)):
            return []  # as at nearly each turn
        values = {
            "after": after,
            "only_deleted": only_deleted,
            "only_copies": only_copies,
            "limit": limit,
        }
        return await self._database.values(_change_of, _CHANGES, values)

    async def done(self, changes: Sequence[QueuedChange]) -> None:
        """Drop changes that are in the record; those of the same turns that came since stay.

        A cut of the power may bring them back.
        """
        sql = "DELETE FROM record_changes WHERE seq = ?"
        seqs = [(change.seq,) for change in changes]
        await self._database.execute_many(sql, seqs, is_synced=False)

    async def add_all(self) -> None:
        """Note every completed turn, the newest one last."""
        await self._database.execute(
            "INSERT INTO record_changes (turn_id) SELECT id FROM turns"
            " WHERE state = 'completed' ORDER BY created_at"
        )


def _change_of(row: Row) -> QueuedChange:
    turn = None
    if row["conversation_id"] is not None:
        try:
            turn = _turn_of(row)
        except (ValueError, TypeError, KeyError):  # a damaged row must not keep the others out
            _log.exception("turn_not_recorded", extra={"turn_id": row["changed_id"]})
    change = TurnChange(turn_id=row["changed_id"], turn=turn, is_deleted=bool(row["is_deleted"]))
    return QueuedChange(seq=row["change_seq"], change=change)


def _turn_of(row: Row) -> RecordedTurn:
    result = json.loads(row["result"])
    return RecordedTurn(
        turn_id=row["changed_id"],
        conversation_id=row["conversation_id"],
        owner_id=row["user_id"],
        position=row["position"],
        occurred_at=from_rfc3339(row["created_at"]),
        message=row["message"],
        reply=result["reply"] if result["outcome"] in _ANSWERED else "",
        recalled_ids=[item["id"] for item in result["memory"]["injected"]],
        labels={name: row[name] for name in _LABELS if row[name]},
        copy_of=row["copy_of"],
    )
