"""Turns in SQLite."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from gateway.conversations.model import Conversation, Turn, TurnEvent
from gateway.conversations.sqlite.conversations import insert_conversation
from gateway.conversations.sqlite.events import insert_events
from gateway.conversations.sqlite.rows import turn_of
from gateway.conversations.sqlite.search import index_copies_blocking
from gateway.conversations.store import IdempotencyKey, KeyedTurn
from gateway.ids import ConversationId, TurnId, UserId, new_turn_id
from gateway.jsonsafe import json_text
from memory.clock import rfc3339
from memory.stores.sqlite.database import Database

_TITLE_CHARS = 80


class SqliteTurnStore:
    """See `TurnStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def accept(
        self,
        turn: Turn,
        *,
        create: Conversation | None = None,
        key: IdempotencyKey | None = None,
        events: Sequence[TurnEvent] = (),
    ) -> Turn:
        """See `TurnStore.accept`."""

        def work(writer: sqlite3.Connection) -> Turn:
            if create is not None:
                insert_conversation(writer, create)
            rows = writer.execute(
                "INSERT INTO turns (id, conversation_id, user_id, seq, state, message,"
                " created_at, started_at) SELECT ?, ?, ?, coalesce(max(seq), 0) + 1, ?, ?, ?, ?"
                " FROM turns WHERE conversation_id = ? RETURNING seq",
                (
                    turn.id,
                    turn.conversation_id,
                    turn.user_id,
                    turn.state,
                    turn.message,
                    rfc3339(turn.created_at),
                    _text(turn.started_at),
                    turn.conversation_id,
                ),
            ).fetchall()
            writer.execute(
                "UPDATE conversations SET last_activity_at = max(last_activity_at, ?),"
                " title = CASE WHEN title = '' THEN ? ELSE title END WHERE id = ?",
                (rfc3339(turn.created_at), title_of(turn.message), turn.conversation_id),
            )
            if key is not None:
                writer.execute(
                    "INSERT INTO idempotency (user_id, key, request_hash, turn_id)"
                    " VALUES (?, ?, ?, ?)",
                    (turn.user_id, key.key, key.request_hash, turn.id),
                )
            insert_events(writer, events)
            return replace(turn, seq=rows[0]["seq"])

        return await self._database.write(work)

    async def find_key(self, user_id: UserId, key: str) -> KeyedTurn | None:
        """See `TurnStore.find_key`."""
        row = await self._database.row(
            "SELECT turn_id, request_hash FROM idempotency WHERE user_id = ? AND key = ?",
            (user_id, key),
        )
        if row is None:
            return None
        return KeyedTurn(turn_id=row["turn_id"], request_hash=row["request_hash"])

    async def get(self, turn_id: TurnId) -> Turn | None:
        """See `TurnStore.get`."""
        found = await self._database.values(turn_of, "SELECT * FROM turns WHERE id = ?", (turn_id,))
        return found[0] if found else None

    async def start(self, turn_id: TurnId, at: datetime) -> None:
        """See `TurnStore.start`."""
        await self._database.write(
            lambda writer: writer.execute(
                "UPDATE turns SET state = 'running', started_at = ?"
                " WHERE id = ? AND state = 'queued'",
                (rfc3339(at), turn_id),
            )
        )

    async def finish(self, turns: Sequence[Turn], events: Sequence[TurnEvent]) -> None:
        """See `TurnStore.finish`."""

        def work(writer: sqlite3.Connection) -> None:
            writer.executemany(
                "UPDATE turns SET state = ?, started_at = ?, finished_at = ?, result = ?,"
                " session_id = ?, last_entry_id = ? WHERE id = ?",
                [(*_ending(turn), turn.id) for turn in turns],
            )
            writer.executemany(
                "UPDATE conversations SET last_activity_at = max(last_activity_at, ?) WHERE id = ?",
                [
                    (rfc3339(turn.finished_at), turn.conversation_id)
                    for turn in turns
                    if turn.finished_at is not None
                ],
            )
            insert_events(writer, events)

        await self._database.write(work)

    async def unfinished(self) -> Sequence[Turn]:
        """See `TurnStore.unfinished`."""
        return await self._database.values(
            turn_of,
            "SELECT * FROM turns WHERE state IN ('queued', 'running') ORDER BY seq, created_at",
        )

    async def history(
        self, conversation_id: ConversationId, *, limit: int, before_seq: int | None = None
    ) -> Sequence[Turn]:
        """See `TurnStore.history`."""
        turns = await self._database.values(
            turn_of,
            "SELECT * FROM turns WHERE conversation_id = ? AND state != 'withdrawn'"
            " AND (? IS NULL OR seq < ?) ORDER BY seq DESC LIMIT ?",
            (conversation_id, before_seq, before_seq, limit),
        )
        return turns[::-1]

    async def fork_point(self, conversation_id: ConversationId, until_seq: int) -> Turn | None:
        """See `TurnStore.fork_point`."""
        found = await self._database.values(
            turn_of,
            "SELECT * FROM turns WHERE conversation_id = ? AND seq <= ?"
            " AND session_id IS NOT NULL AND last_entry_id IS NOT NULL ORDER BY seq DESC LIMIT 1",
            (conversation_id, until_seq),
        )
        return found[0] if found else None

    async def copy_history(
        self, source: ConversationId, until_seq: int, target: Conversation
    ) -> None:
        """See `TurnStore.copy_history`."""

        def work(writer: sqlite3.Connection) -> None:
            insert_conversation(writer, target)
            rows = writer.execute(
                "SELECT id FROM turns WHERE conversation_id = ? AND seq <= ?"
                " AND state = 'completed' ORDER BY seq",
                (source, until_seq),
            ).fetchall()
            writer.executemany(
                "INSERT INTO turns (id, conversation_id, user_id, seq, message, created_at, state,"
                " started_at, finished_at, result, session_id, last_entry_id)"
                " SELECT :id, :target, :user, seq, message, created_at, state, started_at, finished_at,"
                " json_set(result, '$.turn_id', :id, '$.conversation_id', :target),"
                " session_id, last_entry_id FROM turns WHERE id = :copied",
                [
                    {
                        "id": new_turn_id(),
                        "target": target.id,
                        "user": target.user_id,
                        "copied": row["id"],
                    }
                    for row in rows
                ],
            )
            index_copies_blocking(writer, target.id)

        await self._database.write(work)


def title_of(message: str) -> str:
    """Return a conversation's first title: the start of its first message, on one line.

    Empty for a message that is one `/word`: the next message makes the title.
    """
    line = " ".join(message.split())
    if line.startswith("/") and " " not in line and "/" not in line[1:]:
        return ""
    return line if len(line) <= _TITLE_CHARS else f"{line[: _TITLE_CHARS - 1]}…"


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339(moment)


def _ending(turn: Turn) -> tuple[Any, ...]:
    return (
        turn.state,
        _text(turn.started_at),
        _text(turn.finished_at),
        None if turn.result is None else json_text(turn.result),
        turn.session_id,
        turn.last_entry_id,
    )
