"""The chronicle in SQLite."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from memory.clock import from_rfc3339, rfc3339
from memory.errors import StoreUnavailable
from memory.intents.chronicle import (
    IntentPage,
    IntentRecord,
    ObservedField,
    PendingIntent,
    Recording,
)
from memory.stores.sqlite.database import Database, understanding_rows
from memory.stores.sqlite.forgotten import forgotten_at_blocking

_COLUMNS: Final = (
    "seq, id, key, source_kind, owner_id, conversation_id, turn_id, text, payload, occurred_at,"
    " forgotten_at"
)
_IS_TOLD: Final = "(text IS NOT NULL OR forgotten_at IS NOT NULL)"
"""What a policy keeps out of the chronicle has a row all the same, so that it is not taken twice."""
_MAX_CURSOR_DIGITS: Final = 18
_MAX_FIELDS_OF_KEY: Final = 500
"""Fields of which a key's are counted: a model may make up ever new ones."""


def record_blocking(connection: sqlite3.Connection, recordings: Sequence[Recording]) -> list[str]:
    """Write intents within the caller's transaction; gives the ids that were new."""
    return [one.intent_id for one in recordings if _is_new(connection, one)]


def mark_remembered_blocking(connection: sqlite3.Connection, turn_id: str, now: datetime) -> None:
    """Mark a turn: its episode is stored, or there is nothing of it to remember."""
    connection.execute(
        "UPDATE ended_turns SET remembered_at = ? WHERE turn_id = ? AND remembered_at IS NULL",
        (rfc3339(now), turn_id),
    )


def scrub_blocking(
    connection: sqlite3.Connection,
    intent_ids: Sequence[str],
    now: datetime,
    *,
    owner_id: str | None,
) -> None:
    """Forget what these intents of an owner tell; None: whoever's they are.

    That there was something stays. Again, it changes nothing.
    """
    for one in intent_ids:
        connection.execute(
            "UPDATE intents SET text = NULL, payload = NULL, forgotten_at = :now"
            " WHERE id = :intent AND text IS NOT NULL AND (:owner IS NULL OR owner_id = :owner)",
            {"now": rfc3339(now), "intent": one, "owner": owner_id},
        )
        connection.execute(
            "DELETE FROM pending_context"
            " WHERE intent_id = :intent AND (:owner IS NULL OR owner_id = :owner)",
            {"intent": one, "owner": owner_id},
        )


class SqliteChronicle:
    """Intents in the memory's database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, recordings: Sequence[Recording]) -> Sequence[str]:
        """Write all of them or none; gives the ids that were new."""
        return await self._database.write(lambda writer: record_blocking(writer, recordings))

    async def page(
        self,
        owner_id: str,
        *,
        key: str | None = None,
        conversation_id: str | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> IntentPage:
        """List an owner's intents, newest first."""
        if cursor is not None and not _is_place(cursor):
            raise ValueError("The cursor was not given out here.")
        conditions, values = ["owner_id = ?", _IS_TOLD], [owner_id]
        if conversation_id is not None:
            conditions.append("conversation_id = ?")
            values.append(conversation_id)
        if key is not None and key.endswith("."):
            conditions.append("substr(key, 1, ?) = ?")
            values += [str(len(key)), key]
        elif key is not None:
            conditions.append("key = ?")
            values.append(key)
        if cursor is not None:
            conditions.append("seq < CAST(? AS INTEGER)")
            values.append(cursor)
        rows = await self._database.rows(
            f"SELECT {_COLUMNS} FROM intents WHERE {' AND '.join(conditions)}"  # noqa: S608
            " ORDER BY seq DESC LIMIT ?",
            (*values, limit + 1),
        )
        more = str(rows[limit - 1]["seq"]) if len(rows) > limit else None
        return IntentPage(records=[_record_of(row) for row in rows[:limit]], next_cursor=more)

    async def intents_of_turn(self, turn_id: str) -> Sequence[IntentRecord]:
        """Give a turn's intents in the order in which they were recorded."""
        return await self._database.values(
            _record_of,
            f"SELECT {_COLUMNS} FROM intents WHERE turn_id = ? AND {_IS_TOLD} ORDER BY seq",  # noqa: S608
            (turn_id,),
        )

    async def unremembered(self, limit: int) -> Sequence[str]:
        """Give ids of ended turns that are not marked as remembered, oldest first."""
        rows = await self._database.rows(
            "SELECT turn_id FROM ended_turns WHERE remembered_at IS NULL ORDER BY seq LIMIT ?",
            (limit,),
        )
        return [row["turn_id"] for row in rows]

    async def pending(self, conversation_id: str, owner_id: str) -> Sequence[PendingIntent]:
        """Give what waits for the conversation's next prompt, oldest first."""
        return await self._database.values(
            _pending_of,
            "SELECT intent_id, text, occurred_at FROM pending_context WHERE conversation_id = ?"
            " AND owner_id = ? AND consumed_by IS NULL ORDER BY seq",
            (conversation_id, owner_id),
        )

    async def consumed(self, intent_ids: Sequence[str], turn_id: str) -> None:
        """Note that these went into a turn's prompt, and drop their words."""
        await self._database.write(
            lambda writer: writer.executemany(
                "UPDATE pending_context SET consumed_by = ?, text = ''"
                " WHERE intent_id = ? AND consumed_by IS NULL",
                [(turn_id, one) for one in intent_ids],
            )
        )

    async def delete_conversation_context(self, conversation_id: str) -> None:
        """Drop what waits, and ever waited, for a conversation."""
        await self._database.write(
            lambda writer: writer.execute(
                "DELETE FROM pending_context WHERE conversation_id = ?", (conversation_id,)
            )
        )
        with suppress(
            StoreUnavailable
        ):  # it is dropped; its text stays in the log for a while more
            await self._database.checkpoint()

    async def observed_fields(self, form_key: str) -> Sequence[ObservedField]:
        """Give which fields the payloads of a key or family had."""
        rows = await self._database.rows(
            "SELECT field, type, seen FROM intent_fields WHERE key = ? ORDER BY field, type",
            (form_key,),
        )
        return [
            ObservedField(name=row["field"], type=row["type"], seen=row["seen"]) for row in rows
        ]


@dataclass(frozen=True, slots=True)
class _Words:
    """What an intent's row says."""

    text: str | None = None
    payload: str | None = None
    forgotten_at: str | None = None


def _words_of(connection: sqlite3.Connection, one: Recording) -> _Words:
    """Put a row into words: none where the policy wants none, or it tells of what was forgotten since."""
    if one.record is None:
        return _Words()
    payload = _json(one.record.payload)
    forgotten_at = forgotten_at_blocking(connection, one.key, payload, one.occurred_at)
    if forgotten_at is not None:
        return _Words(forgotten_at=forgotten_at)
    return _Words(one.record.text, payload)


def _is_new(connection: sqlite3.Connection, one: Recording) -> bool:
    """Write one; what was recorded before, in whichever sink, is left as it is.

    What was there is looked for, not left to a conflict: that would use up a number of the order, and
    hide every other conflict.
    """
    known = "SELECT 1 FROM intents WHERE id = ?"
    if connection.execute(known, (one.intent_id,)).fetchone() is not None:
        return False
    words = _words_of(connection, one)
    seq = _write_record(connection, one, words)
    is_waiting = one.context is not None and words.forgotten_at is None
    if is_waiting and one.conversation_id is not None:
        connection.execute(
            "INSERT INTO pending_context"
            " (intent_id, owner_id, conversation_id, text, occurred_at, seq)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (
                one.intent_id,
                one.owner_id,
                one.conversation_id,
                one.context,
                rfc3339(one.occurred_at),
                seq,
            ),
        )
    if one.key == "turn.completed" and one.turn_id is not None:
        is_bare = one.record is not None and one.record.payload.get("tool_calls") == 0
        connection.execute(
            "INSERT OR IGNORE INTO ended_turns (turn_id, seq, remembered_at) VALUES (?, ?, ?)",
            (one.turn_id, seq, rfc3339(one.occurred_at) if is_bare else None),
        )  # a turn without calls leaves no episode, see `memory.episodes.episode_worker`
    _count_fields(connection, one)
    return True


def _count_fields(connection: sqlite3.Connection, one: Recording) -> None:
    for name, kind in one.fields:
        seen = connection.execute(
            "UPDATE intent_fields SET seen = seen + 1 WHERE key = ? AND field = ? AND type = ?",
            (one.form_key, name, kind),
        )
        if not seen.rowcount:
            connection.execute(
                "INSERT INTO intent_fields (key, field, type, seen) SELECT ?, ?, ?, 1"
                " WHERE (SELECT count(*) FROM intent_fields WHERE key = ?) < ?",
                (one.form_key, name, kind, one.form_key, _MAX_FIELDS_OF_KEY),
            )


def _write_record(connection: sqlite3.Connection, one: Recording, words: _Words) -> int:
    """Write the row, and give its place. One that tells nothing is there so that it is not taken twice."""
    cursor = connection.execute(
        "INSERT INTO intents (id, key, source_kind, owner_id, conversation_id, turn_id,"
        " text, payload, occurred_at, forgotten_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            one.intent_id,
            one.key,
            one.source_kind,
            one.owner_id,
            one.conversation_id,
            one.turn_id,
            words.text,
            words.payload,
            rfc3339(one.occurred_at),
            words.forgotten_at,
        ),
    )
    assert cursor.lastrowid is not None, "a row was written"
    return cursor.lastrowid


def _json(payload: Mapping[str, Any]) -> str:
    return json.dumps(payload, ensure_ascii=False, allow_nan=False)


def _is_place(cursor: str) -> bool:
    return cursor.isascii() and cursor.isdigit() and len(cursor) <= _MAX_CURSOR_DIGITS


def _pending_of(row: sqlite3.Row) -> PendingIntent:
    return PendingIntent(
        intent_id=row["intent_id"],
        text=row["text"],
        occurred_at=from_rfc3339(row["occurred_at"]),
    )


@understanding_rows()
def _record_of(row: Mapping[str, Any] | sqlite3.Row) -> IntentRecord:
    return IntentRecord(
        id=row["id"],
        key=row["key"],
        source_kind=row["source_kind"],
        owner_id=row["owner_id"],
        conversation_id=row["conversation_id"],
        turn_id=row["turn_id"],
        text=row["text"] or "",
        payload={} if row["payload"] is None else json.loads(row["payload"]),
        occurred_at=from_rfc3339(row["occurred_at"]),
        forgotten=row["forgotten_at"] is not None,
    )
