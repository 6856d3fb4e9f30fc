"""Deliberately wrong stores of conversations, turns and events: each breaks one contract."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from gateway.conversations.model import Conversation, ConversationChange, Page, Turn, TurnEvent
from gateway.conversations.sqlite.conversations import SqliteConversationStore, insert_conversation
from gateway.conversations.sqlite.events import SqliteEventStore
from gateway.conversations.sqlite.turns import SqliteTurnStore
from gateway.conversations.store import KeyedTurn, UnknownCursor
from gateway.ids import ConversationId, TurnId, UserId
from memory.clock import rfc3339
from memory.errors import StoreConflict
from memory.stores.sqlite.database import Database
from tests.conformance.suites.conversation_values import AT

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


async def execute(database: Database, sql: str, values: Sequence[object] = ()) -> None:
    """Run one statement in a transaction of its own."""
    await database.write(lambda writer: writer.execute(sql, values))


class Unowned(SqliteConversationStore):
    async def get(self, conversation_id: ConversationId, user_id: UserId) -> Conversation | None:
        row = await self._database.row(
            "SELECT user_id FROM conversations WHERE id = ?", (conversation_id,)
        )
        return await super().get(conversation_id, row["user_id"] if row else user_id)


class Overwriting(SqliteConversationStore):
    async def create(self, conversation: Conversation) -> None:
        def work(writer: sqlite3.Connection) -> None:
            writer.execute("DELETE FROM conversations WHERE id = ?", (conversation.id,))
            insert_conversation(writer, conversation)

        await self._database.write(work)


class CoarseCursor(SqliteConversationStore):
    """Its place is the moment alone: what shares it with the last one of a page is skipped."""

    async def page(
        self, user_id: UserId, *, limit: int, cursor: str | None = None, **options: Any
    ) -> Page:
        page = await super().page(user_id, limit=1000, **options)
        rest = [
            conversation
            for conversation in page.conversations
            if cursor is None or rfc3339(conversation.last_activity_at) < cursor
        ]
        more = len(rest) > limit
        last = rfc3339(rest[limit - 1].last_activity_at) if more else None
        return Page(conversations=rest[:limit], next_cursor=last)


class Keeping(SqliteConversationStore):
    """Unsets nothing."""

    async def change(self, conversation_id: ConversationId, change: ConversationChange) -> None:
        await super().change(conversation_id, replace(change, unset=()))


class TrustingCursor(SqliteConversationStore):
    """Takes garbage for no cursor."""

    async def page(self, user_id: UserId, **options: Any) -> Page:
        try:
            return await super().page(user_id, **options)
        except UnknownCursor:
            return await super().page(user_id, **options | {"cursor": None})


class Likening(SqliteConversationStore):
    """Searches with LIKE and forgets its wildcards."""

    async def page(self, user_id: UserId, *, query: str | None = None, **options: Any) -> Page:
        page = await super().page(user_id, **options)
        rows = await self._database.rows(
            "SELECT id FROM conversations WHERE title LIKE ?", (f"%{query or ''}%",)
        )
        found = {row["id"] for row in rows}
        kept = [conversation for conversation in page.conversations if conversation.id in found]
        return Page(conversations=kept, next_cursor=page.next_cursor)


class Clearing(SqliteConversationStore):
    async def change(self, conversation_id: ConversationId, change: ConversationChange) -> None:
        await super().change(conversation_id, change)
        if change.model is None:
            await execute(
                self._database,
                "UPDATE conversations SET model = NULL WHERE id = ?",
                (conversation_id,),
            )


class KeepingFork(SqliteConversationStore):
    async def bind_session(self, conversation_id: ConversationId, session_id: str | None) -> None:
        await execute(
            self._database,
            "UPDATE conversations SET session_id = ? WHERE id = ?",
            (session_id, conversation_id),
        )


class Hiding(SqliteConversationStore):
    """Deletes the conversation and leaves what belongs to it."""

    async def delete(self, conversation_id: ConversationId, at: datetime) -> None:
        del at
        await execute(
            self._database, "UPDATE conversations SET user_id = '' WHERE id = ?", (conversation_id,)
        )


class Thorough(SqliteConversationStore):
    """Deletes the keys with their turns."""

    async def delete(self, conversation_id: ConversationId, at: datetime) -> None:
        await super().delete(conversation_id, at)
        await execute(self._database, "DELETE FROM idempotency")


class Hoarding(SqliteConversationStore):
    """Keeps the keys for ever."""

    async def delete(self, conversation_id: ConversationId, at: datetime) -> None:
        await super().delete(conversation_id, min(at, AT))


class Greedy(SqliteConversationStore):
    """Gives all sessions of a conversation, shared ones too."""

    async def own_sessions(self, conversation_id: ConversationId) -> Sequence[str]:
        rows = await self._database.rows(
            "SELECT session_id FROM turns WHERE conversation_id = ? UNION"
            " SELECT session_id FROM conversations WHERE id = ?",
            (conversation_id, conversation_id),
        )
        return [row["session_id"] for row in rows if row["session_id"]]


class Racing(SqliteTurnStore):
    """Reads the last number before it writes the next."""

    async def accept(self, turn: Turn, **options: Any) -> Turn:
        row = await self._database.row("SELECT count(*) AS n FROM turns")
        accepted = await super().accept(turn, **options)
        return replace(accepted, seq=(row["n"] if row else 0) + 1)


class InTwoSteps(SqliteTurnStore):
    """Accepts, copies and ends in more than one transaction."""

    async def accept(
        self, turn: Turn, *, create: Conversation | None = None, **options: Any
    ) -> Turn:
        if create is not None:
            await self._database.write(lambda writer: insert_conversation(writer, create))
        return await super().accept(turn, key=options.get("key"))

    async def finish(self, turns: Sequence[Turn], events: Sequence[TurnEvent], **_: bool) -> None:
        await super().finish(turns, [])
        await super().finish([], events)


class SharedKeys(SqliteTurnStore):
    async def find_key(self, user_id: UserId, key: str) -> KeyedTurn | None:
        row = await self._database.row("SELECT user_id FROM idempotency WHERE key = ?", (key,))
        return await super().find_key(row["user_id"] if row else user_id, key)


class Reviving(SqliteTurnStore):
    async def start(self, turn_id: TurnId, at: datetime) -> None:
        await execute(
            self._database,
            "UPDATE turns SET state = 'running', started_at = ? WHERE id = ?",
            (rfc3339(at), turn_id),
        )


class Strict(SqliteTurnStore):
    """Writes an ending once."""

    async def finish(self, turns: Sequence[Turn], events: Sequence[TurnEvent], **_: bool) -> None:
        for turn in turns:
            known = await self.get(turn.id)
            if known is not None and known.state == "completed":
                raise StoreConflict("It has ended.")
        await super().finish(turns, events)


class Early(SqliteTurnStore):
    """Takes a turn with a result for one that has ended."""

    async def unfinished(self) -> Sequence[Turn]:
        return [turn for turn in await super().unfinished() if turn.result is None]


class Unordered(SqliteTurnStore):
    async def unfinished(self) -> Sequence[Turn]:
        return sorted(await super().unfinished(), key=lambda entry: entry.id)

    async def history(self, conversation_id: ConversationId, **options: Any) -> Sequence[Turn]:
        found = await super().history(conversation_id, **options)
        return found[::-1]


class Remembering(SqliteTurnStore):
    """Gives out what it holds instead of a copy, and loses it when it is closed."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._held: dict[str, Turn] = {}

    async def finish(self, turns: Sequence[Turn], events: Sequence[TurnEvent], **_: bool) -> None:
        self._held |= {turn.id: turn for turn in turns}
        await super().finish(turns, events)

    async def get(self, turn_id: TurnId) -> Turn | None:
        return self._held.get(turn_id) or await super().get(turn_id)

    async def unfinished(self) -> Sequence[Turn]:
        return [turn for turn in await super().unfinished() if turn.id in self._held]


class Referring(SqliteTurnStore):
    """Copies turns with the results of the originals."""

    async def copy_history(
        self, source: ConversationId, until_seq: int, target: Conversation
    ) -> None:
        await super().copy_history(source, until_seq, target)
        await execute(
            self._database,
            "UPDATE turns SET result = (SELECT o.result FROM turns o WHERE o.conversation_id = ? AND o.seq = turns.seq) WHERE conversation_id = ?",
            (source, target.id),
        )


def without_trigger(trigger: str) -> type[SqliteTurnStore]:
    """Make a store that leaves out a part of what it keeps beside the turns."""

    class Without(SqliteTurnStore):
        async def accept(self, turn: Turn, **options: Any) -> Turn:
            await execute(self._database, f"DROP TRIGGER IF EXISTS {trigger}")
            return await super().accept(turn, **options)

    return Without


class Unbounded(SqliteTurnStore):
    """Branches off after the wanted turn."""

    async def fork_point(self, conversation_id: ConversationId, until_seq: int) -> Turn | None:
        del until_seq
        return await super().fork_point(conversation_id, 1_000_000)


class CString(SqliteTurnStore):
    """Ends a text at its first NUL."""

    async def accept(self, turn: Turn, **options: Any) -> Turn:
        message = turn.message.partition("\0")[0]
        return await super().accept(replace(turn, message=message), **options)


class Fragile(SqliteTurnStore):
    async def finish(self, turns: Sequence[Turn], events: Sequence[TurnEvent], **_: bool) -> None:
        for turn in turns:
            json.dumps(turn.result, ensure_ascii=False, default=str).encode("utf-8", "strict")
        await super().finish(turns, events)


class OneByOne(SqliteEventStore):
    async def append(self, events: Sequence[TurnEvent], **_: bool) -> None:
        for event in events:
            await super().append([event])


class Doubling(SqliteEventStore):
    """Refuses what it has already."""

    async def append(self, events: Sequence[TurnEvent], **_: bool) -> None:
        for event in events:
            if await self.find(event.turn_id, event.n) is not None:
                raise StoreConflict("It is there.")
        await super().append(events)


class Forgetful(SqliteEventStore):
    async def last_seq(self) -> int:
        row = await self._database.row("SELECT coalesce(max(seq), 0) AS last FROM events")
        return int(row["last"]) if row else 0


class Shuffled(SqliteEventStore):
    async def after(
        self, conversation_id: ConversationId, seq: int, *, limit: int, **_: object
    ) -> Sequence[TurnEvent]:
        found = await super().after(conversation_id, seq, limit=limit)
        return sorted(found, key=lambda hit: -hit.n)


class Late(SqliteEventStore):
    """Reads what it knew a moment ago."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._known: dict[str, int] = {}

    async def find(self, turn_id: TurnId, n: int) -> int | None:
        known = self._known.get(f"{turn_id}{n}")
        self._known[f"{turn_id}{n}"] = await super().find(turn_id, n) or 0
        return known


class Unshielded(Database):
    """Leaves a transaction open when it is cancelled, as the driver does."""

    async def write(self, work: Work[T], *, is_synced: bool = True) -> T:
        async with self._writing:
            await self._writer.run(lambda writer: writer.execute("BEGIN IMMEDIATE"))
            try:
                result = await self._writer.run(work)
            except Exception:
                await self._writer.run(lambda writer: writer.rollback())
                raise
            await self._writer.run(lambda writer: writer.execute("COMMIT"))
            return result


def unshielded(database: Database) -> Database:
    return Unshielded(database.path, database._writer, database._reader, database._identity)  # noqa: SLF001  the same file
