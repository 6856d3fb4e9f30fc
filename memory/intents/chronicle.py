"""The chronicle: intents in the order in which they were recorded."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from memory.clock import rfc3339
from memory.errors import StoreUnavailable
from memory.intents.registry import SourceKind
from memory.stores.database import Connection, SqlDatabase, decoding_rows
from memory.stores.sqlite.forgotten import forgotten_at_blocking, without_words
from memory.stores.sqlite.row_values import Row, read_value
from memory.stores.sqlite.statements import insert_blocking

Guard = Callable[[Any], None]
"""Called first in a transaction, with its connection: what it raises keeps all from being written.
"""


def unguarded(_: Any) -> None:
    """Refuse nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentRecord:
    """An intent as it is stored: masked and bounded."""

    id: str
    key: str
    source_kind: SourceKind
    owner_id: str
    conversation_id: str | None
    turn_id: str | None
    text: str
    """Empty when forgotten."""
    payload: Mapping[str, Any]
    """Every text in it masked; empty when forgotten."""
    occurred_at: datetime
    forgotten: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What one intent leaves in the stores."""

    intent_id: str
    key: str
    source_kind: SourceKind
    owner_id: str
    conversation_id: str | None
    turn_id: str | None
    occurred_at: datetime
    text: str | None
    """None if the policy keeps it out of the chronicle."""
    payload: Mapping[str, Any]
    context: str | None
    """Text for the conversation's next prompt; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingIntent:
    """What waits for a conversation's next prompt."""

    intent_id: str
    text: str
    occurred_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentPage:
    """Part of the chronicle, newest first, and where the next part begins."""

    records: Sequence[IntentRecord]
    next_cursor: str | None


_COLUMNS: Final = (
    "seq, id, key, source_kind, owner_id, conversation_id, turn_id, text, payload, occurred_at,"
    " forgotten_at"
)
_IS_TOLD: Final = "(text IS NOT NULL OR forgotten_at IS NOT NULL)"
"""What a policy keeps out of the chronicle has a row all the same, so that it is not recorded
twice."""
_GLOB_MARKS: Final = re.compile(r"[*?\[]")
_PLACE: Final = re.compile(r"\{\w+\}")
_MAX_CURSOR_DIGITS: Final = 18


def record_blocking(connection: Connection, recordings: Sequence[Recording]) -> list[str]:
    """Write intents within the caller's transaction; return the ids that were new."""
    return [recording.intent_id for recording in recordings if _is_new(connection, recording)]


def mark_talk_blocking(connection: Connection, recordings: Sequence[Recording]) -> None:
    """Mark ended turns without a tool call, of which no episode is made."""
    acted = {recording.turn_id for recording in recordings if recording.source_kind == "tool"}
    for ended in recordings:
        has_none = ended.payload.get("tool_calls") == 0 and ended.turn_id not in acted
        if ended.key == "turn.completed" and ended.turn_id is not None and has_none:
            mark_remembered_blocking(connection, ended.turn_id, ended.occurred_at)


def mark_remembered_blocking(connection: Connection, turn_id: str, now: datetime) -> None:
    """Mark a turn: its episode is stored, or there is nothing of it to remember."""
    connection.execute(
        "UPDATE ended_turns SET remembered_at = ? WHERE turn_id = ? AND remembered_at IS NULL",
        (rfc3339(now), turn_id),
    )


def scrub_blocking(
    connection: Connection,
    intent_ids: Sequence[str],
    now: datetime,
    *,
    owner_id: str | None,
) -> None:
    """Remove what these intents say, of one owner or of all; that they
    happened stays. Idempotent.
    """
    for intent_id in intent_ids:
        connection.execute(
            "UPDATE intents SET text = NULL, payload = NULL, forgotten_at = :now"
            " WHERE id = :intent AND text IS NOT NULL"
            " AND (CAST(:owner AS TEXT) IS NULL OR owner_id = :owner)",
            {"now": rfc3339(now), "intent": intent_id, "owner": owner_id},
        )
        connection.execute(
            "DELETE FROM pending_context"
            " WHERE intent_id = :intent AND (CAST(:owner AS TEXT) IS NULL OR owner_id = :owner)",
            {"intent": intent_id, "owner": owner_id},
        )


def scrub_deleted_blocking(
    connection: Connection, intent_ids: Sequence[str], now: datetime
) -> None:
    """Remove what these intents say, as `scrub_blocking` does, because a conversation was deleted.

    The ids of items in those of memory stay, in the payload: the replies of other turns still
    follow what becomes of these items.
    """
    rows = connection.execute(
        "SELECT id, key, payload FROM intents WHERE payload IS NOT NULL AND text IS NOT NULL"
        " AND id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(intent_ids)),),
    ).fetchall()
    scrub_blocking(connection, intent_ids, now, owner_id=None)
    connection.executemany(
        "UPDATE intents SET payload = ? WHERE id = ?",
        [(without_words(row["key"], row["payload"]), row["id"]) for row in rows],
    )


class SqlChronicle:
    """Intents, what waits for prompts, and turns of which episodes are to be made."""

    def __init__(self, database: SqlDatabase, *, talk_waits: bool = True) -> None:
        """`talk_waits`: also turns without a tool call wait to be remembered; a model learns from
        them.
        """
        self._database = database
        self._talk_waits = talk_waits

    async def record(
        self,
        recordings: Sequence[Recording],
        guard: Guard = unguarded,
        *,
        is_synced: bool = True,
    ) -> Sequence[str]:
        """Write all of them or none, in one transaction; return the ids that were new.

        An id that is already there is skipped. A `turn.completed` marks its turn as ended. If not
        `is_synced`, a cut of the power may lose them. Raise `StoreUnavailable` if nothing was
        written, and what `guard` raises.
        """

        def work(writer: Connection) -> list[str]:
            guard(writer)
            new = record_blocking(writer, recordings)
            if not self._talk_waits:
                mark_talk_blocking(writer, recordings)
            return new

        return await self._database.write(work, is_synced=is_synced)

    async def page(
        self,
        owner_id: str,
        *,
        key: str | None = None,
        conversation_id: str | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> IntentPage:
        """List an owner's intents, newest first: the order of recording, backwards.

        `key` is a key, a family with its places in braces (`tool.{tool_name}.ok`), or a prefix of
        keys that ends in a dot: `tool.`, `tool.Bash.`. Forgotten intents are listed without their
        text; those that a policy kept out of the chronicle are not listed. Raise `ValueError` if
        the cursor is not one of this chronicle.
        """
        if cursor is not None and not _is_place(cursor):
            raise ValueError("The cursor was not given out here.")
        conditions, values = ["owner_id = ?", _IS_TOLD], [owner_id]
        if conversation_id is not None:
            conditions.append("conversation_id = ?")
            values.append(conversation_id)
        if key is not None and key.endswith("."):
            conditions.append("substr(key, 1, CAST(? AS INTEGER)) = ?")
            values += [str(len(key)), key]
        elif key is not None:
            conditions.append("glob(?, key)")
            values.append(_PLACE.sub("*", _GLOB_MARKS.sub(r"[\g<0>]", key)))
        if cursor is not None:
            conditions.append("seq < CAST(? AS BIGINT)")
            values.append(cursor)
        rows = await self._database.rows(
            f"SELECT {_COLUMNS} FROM intents WHERE {' AND '.join(conditions)}"  # noqa: S608
            " ORDER BY seq DESC LIMIT ?",
            (*values, limit + 1),
        )
        more = str(rows[limit - 1]["seq"]) if len(rows) > limit else None
        return IntentPage(records=[_record_of(row) for row in rows[:limit]], next_cursor=more)

    async def intent(self, intent_id: str, owner_id: str) -> IntentRecord | None:
        """Return one intent of an owner; None if there is none, or a policy kept it out."""
        return await self._database.value(
            _record_of,
            f"SELECT {_COLUMNS} FROM intents WHERE id = ? AND owner_id = ? AND {_IS_TOLD}",  # noqa: S608
            (intent_id, owner_id),
        )

    async def intents_of_turn(self, turn_id: str) -> Sequence[IntentRecord]:
        """Return a turn's intents in the order of recording; for the server's own work, not for
        requests.
        """
        return await self._database.values(
            _record_of,
            f"SELECT {_COLUMNS} FROM intents WHERE turn_id = ? AND {_IS_TOLD} ORDER BY seq",  # noqa: S608
            (turn_id,),
        )

    async def unremembered(self, limit: int) -> Sequence[str]:
        """Return ids of ended turns, of all owners, that are not marked as remembered, oldest
        first.
        """
        rows = await self._database.rows(
            "SELECT turn_id FROM ended_turns WHERE remembered_at IS NULL ORDER BY seq LIMIT ?",
            (limit,),
        )
        return [row["turn_id"] for row in rows]

    async def pending(self, conversation_id: str, owner_id: str) -> Sequence[PendingIntent]:
        """Return what waits for the conversation's next prompt, oldest first."""
        return await self._database.values(
            partial(read_value, PendingIntent),
            "SELECT intent_id, text, occurred_at FROM pending_context WHERE conversation_id = ?"
            " AND owner_id = ? AND consumed_by IS NULL ORDER BY seq",
            (conversation_id, owner_id),
        )

    async def consumed(
        self, intent_ids: Sequence[str], turn_id: str, guard: Guard = unguarded
    ) -> None:
        """Mark waiting intents as used in a turn's prompt, and drop their text;
        ignore all others. Raise what `guard` raises.
        """

        def work(writer: Connection) -> None:
            guard(writer)
            writer.executemany(
                "UPDATE pending_context SET consumed_by = ?, text = ''"
                " WHERE intent_id = ? AND consumed_by IS NULL",
                [(turn_id, intent_id) for intent_id in intent_ids],
            )

        await self._database.write(work)

    async def delete_conversation_context(self, conversation_id: str) -> None:
        """Delete all pending context of a conversation that was left or deleted."""
        await self._database.execute(
            "DELETE FROM pending_context WHERE conversation_id = ?", (conversation_id,)
        )
        with suppress(StoreUnavailable):  # it is deleted; its text stays in the log for a while
            await self._database.checkpoint()


def _is_new(connection: Connection, new: Recording) -> bool:
    """Write an intent unless it was recorded before; return whether it was written.

    This looks for an earlier row instead of leaving it to a conflict, which would use up a number
    of the order and hide every other conflict.
    """
    known = "SELECT 1 FROM intents WHERE id = ?"
    if connection.execute(known, (new.intent_id,)).fetchone() is not None:
        return False
    at = rfc3339(new.occurred_at)
    content = _content_of(connection, new)
    columns = ("key", "source_kind", "owner_id", "conversation_id", "turn_id")
    row = {name: getattr(new, name) for name in columns} | {"id": new.intent_id, "occurred_at": at}
    inserted = insert_blocking(connection, "intents", row | content, "RETURNING seq").fetchall()
    is_forgotten = content["forgotten_at"] is not None
    if new.context is not None and new.conversation_id is not None and not is_forgotten:
        waiting = {
            "intent_id": new.intent_id,
            "owner_id": new.owner_id,
            "conversation_id": new.conversation_id,
            "text": new.context,
            "occurred_at": at,
            "seq": inserted[0]["seq"],
        }
        insert_blocking(connection, "pending_context", waiting)
    if new.key == "turn.completed" and new.turn_id is not None:
        ended = {"turn_id": new.turn_id, "seq": inserted[0]["seq"]}
        insert_blocking(connection, "ended_turns", ended, "ON CONFLICT DO NOTHING")
    return True


def _content_of(connection: Connection, new: Recording) -> dict[str, str | None]:
    """Return the columns that hold what an intent says.

    They are empty if the policy keeps the intent out of the chronicle, so that its row only
    prevents a second recording. If the intent mentions an item that was forgotten since, or has the
    answer to it, it is emptied as in `scrub_deleted_blocking`.
    """
    forgotten_at = None
    if new.text is not None:
        payload = json.dumps(new.payload, ensure_ascii=False, allow_nan=False)
        forgotten_at = forgotten_at_blocking(
            connection, new.key, payload, new.turn_id, new.occurred_at
        )
        if forgotten_at is None:
            return {"text": new.text, "payload": payload, "forgotten_at": None}
        left = without_words(new.key, payload)
        return {"text": None, "payload": left, "forgotten_at": forgotten_at}
    return {"text": None, "payload": None, "forgotten_at": None}


def _is_place(cursor: str) -> bool:
    return cursor.isascii() and cursor.isdigit() and len(cursor) <= _MAX_CURSOR_DIGITS


@decoding_rows()
def _record_of(row: Row) -> IntentRecord:
    is_told = row["text"] is not None
    return read_value(
        IntentRecord,
        row,
        text=row["text"] or "",
        payload=json.loads(row["payload"]) if is_told else {},
        forgotten=row["forgotten_at"] is not None,
    )
