"""Deliberately wrong stores of conversations, turns and events: each breaks one contract."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from gateway.conversations.model import Conversation, Page, Turn, TurnEvent
from gateway.conversations.sql.conversations import ConversationStore, insert_conversation
from gateway.conversations.sql.events import EventStore
from gateway.conversations.sql.turns import TurnStore
from gateway.conversations.store import UnknownCursor
from gateway.ids import TurnId, UserId
from memory.errors import StoreConflict
from memory.stores.database import SqlDatabase
from memory.stores.sqlite.database import Database

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


async def execute(database: SqlDatabase, sql: str, values: Sequence[object] = ()) -> None:
    """Run one statement in a transaction of its own."""
    await database.write(lambda writer: writer.execute(sql, values))


class TrustingCursor(ConversationStore):
    """Takes garbage for no cursor."""

    async def page(self, user_id: UserId, **options: Any) -> Page:
        try:
            return await super().page(user_id, **options)
        except UnknownCursor:
            return await super().page(user_id, **options | {"cursor": None})


class Likening(ConversationStore):
    """Searches with LIKE and forgets its wildcards."""

    async def page(self, user_id: UserId, *, query: str | None = None, **options: Any) -> Page:
        page = await super().page(user_id, **options)
        rows = await self._database.rows(
            "SELECT id FROM conversations WHERE title LIKE ?", (f"%{query or ''}%",)
        )
        found = {row["id"] for row in rows}
        kept = [conversation for conversation in page.conversations if conversation.id in found]
        return Page(conversations=kept, next_cursor=page.next_cursor)


class Racing(TurnStore):
    """Reads the last number before it writes the next."""

    async def accept(self, turn: Turn, **options: Any) -> Turn:
        row = await self._database.row("SELECT count(*) AS n FROM turns")
        accepted = await super().accept(turn, **options)
        return replace(accepted, seq=(row["n"] if row else 0) + 1)


class InTwoSteps(TurnStore):
    """Accepts, copies and ends in more than one transaction."""

    async def accept(
        self, turn: Turn, *, create: Conversation | None = None, **options: Any
    ) -> Turn:
        if create is not None:
            await self._database.write(lambda writer: insert_conversation(writer, create))
        return await super().accept(turn, key=options.get("key"))

    async def finish(self, turns: Sequence[Turn], events: Sequence[TurnEvent], **_: Any) -> Any:
        await super().finish(turns, [])
        await super().finish([], events)


class Strict(TurnStore):
    """Writes an ending once."""

    async def finish(self, turns: Sequence[Turn], events: Sequence[TurnEvent], **_: Any) -> Any:
        for turn in turns:
            known = await self.get(turn.id)
            if known is not None and known.state == "completed":
                raise StoreConflict("It has ended.")
        await super().finish(turns, events)


class Remembering(TurnStore):
    """Returns what it holds instead of a copy, and loses it when it is closed."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._held: dict[str, Turn] = {}

    async def finish(self, turns: Sequence[Turn], events: Sequence[TurnEvent], **_: Any) -> Any:
        self._held |= {turn.id: turn for turn in turns}
        await super().finish(turns, events)

    async def get(self, turn_id: TurnId) -> Turn | None:
        return self._held.get(turn_id) or await super().get(turn_id)

    async def unfinished(
        self, on_damaged: Callable[[], None] = lambda: None, **options: Any
    ) -> Sequence[Turn]:
        found = await super().unfinished(on_damaged, **options)
        return [turn for turn in found if turn.id in self._held]


def without_trigger(trigger: str) -> type[TurnStore]:
    """Make a store that leaves out a part of what it keeps beside the turns."""

    class Without(TurnStore):
        async def accept(self, turn: Turn, **options: Any) -> Turn:
            await execute(self._database, f"DROP TRIGGER IF EXISTS {trigger}")
            return await super().accept(turn, **options)

    return Without


class CString(TurnStore):
    """Ends a text at its first NUL."""

    async def accept(self, turn: Turn, **options: Any) -> Turn:
        message = turn.message.partition("\0")[0]
        return await super().accept(replace(turn, message=message), **options)


class Fragile(TurnStore):
    async def finish(self, turns: Sequence[Turn], events: Sequence[TurnEvent], **_: Any) -> Any:
        for turn in turns:
            json.dumps(turn.result, ensure_ascii=False, default=str).encode("utf-8", "strict")
        await super().finish(turns, events)


class OneByOne(EventStore):
    async def append(self, events: Sequence[TurnEvent], **_: Any) -> Any:
        for event in events:
            await super().append([event])


class Late(EventStore):
    """Reads what it knew a moment ago."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._known: dict[str, int] = {}

    async def find(self, turn_id: TurnId, n: int) -> int | None:
        known = self._known.get(f"{turn_id}{n}")
        self._known[f"{turn_id}{n}"] = await super().find(turn_id, n) or 0
        return known


def _begin_blocking(writer: sqlite3.Connection) -> bool:
    return not writer.in_transaction and bool(writer.execute("BEGIN IMMEDIATE"))


class Unshielded(Database):
    """Leaves a transaction open when it is cancelled, as the driver does."""

    async def write(self, work: Work[T], *, is_synced: bool = True) -> T:
        async with self._writing:
            begun = await self._writer.run(_begin_blocking)
            assert begun, "a transaction was left open"
            try:
                result = await self._writer.run(work)
            except Exception:
                await self._writer.run(lambda writer: writer.rollback())
                raise
            await self._writer.run(lambda writer: writer.execute("COMMIT"))
            return result


def unshielded(database: Database) -> Database:
    return Unshielded(database.path, database._writer, database._reader, database._identity)  # noqa: SLF001  the same file
