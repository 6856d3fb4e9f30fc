"""Conversations in SQLite."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any

from gateway.conversations.model import Branch, Conversation, ConversationChange, Page, TextMatch
from gateway.conversations.sql.branches import branches_blocking
from gateway.conversations.sql.leases import Fence
from gateway.conversations.sql.rows import readable
from gateway.conversations.sql.text_index import TEXT_INDEXES
from gateway.conversations.store import KEY_OUTLIVES, UnknownCursor
from gateway.ids import ConversationId, UserId
from memory.clock import rfc3339
from memory.errors import StoreUnavailable
from memory.stores.database import Connection, Row, SqlDatabase
from memory.stores.sqlite.row_values import columns_of, read_value
from memory.stores.sqlite.statements import IN_IDS, id_list
from memory.stores.sqlite.vacuum import IndexVacuum

_COLUMNS = [field.name for field in fields(Conversation) if field.name != "turns"]
_INSERT = (
    f"INSERT INTO conversations ({', '.join(_COLUMNS)})"  # noqa: S608
    f" VALUES ({', '.join(f':{name}' for name in _COLUMNS)})"
)
_conversation_of = partial(read_value, Conversation)


def insert_conversation(writer: Connection, conversation: Conversation) -> None:
    """Insert within an open transaction."""
    writer.execute(_INSERT, columns_of(conversation))


class ConversationStore:
    """Conversations without their turns."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._fence = Fence(database)
        self._texts = TEXT_INDEXES[database.engine]
        self.vacuum = IndexVacuum(database, "search_words")
        """Removes the words of deleted conversations from the search index while it runs."""

    async def create(self, conversation: Conversation) -> None:
        """Add a conversation. Its `turns` starts at 0 and follows the turns that are written.

        Raise `StoreConflict` if its id is taken.
        """

        def work(writer: Connection) -> None:
            insert_conversation(writer, conversation)
            self._texts.title_changed_blocking(writer, conversation.id)

        await self._database.write(work)

    async def get(self, conversation_id: ConversationId, user_id: UserId) -> Conversation | None:
        """Return the conversation; None if there is none of that id or it is another user's."""
        return await self._database.value(
            _conversation_of,
            "SELECT * FROM conversations WHERE id = ? AND user_id = ?",
            (conversation_id, user_id),
        )

    async def count(self) -> int:
        """Return how many conversations there are, of all users."""
        return int(await self._database.scalar("SELECT count(*) FROM conversations"))

    async def missing(self, ids: Sequence[ConversationId]) -> Sequence[ConversationId]:
        """Return those of some ids that no conversation has, of any user."""
        rows = await self._database.rows(
            f"SELECT id FROM conversations WHERE id IN {IN_IDS}",  # noqa: S608
            {"ids": id_list(ids)},
        )
        known = {row["id"] for row in rows}
        return [id_ for id_ in ids if id_ not in known]

    async def busy(self, ids: Sequence[ConversationId]) -> Collection[ConversationId]:
        """Return those of some conversations in which a turn runs or waits."""
        rows = await self._database.rows(
            "SELECT DISTINCT conversation_id FROM turns"  # noqa: S608
            f" WHERE conversation_id IN {IN_IDS} AND state IN ('queued', 'running')",
            {"ids": id_list(ids)},
        )
        return {row["conversation_id"] for row in rows}

    async def page(
        self, user_id: UserId, *, limit: int, cursor: str | None = None, query: str | None = None
    ) -> Page:
        """List a user's conversations by last activity, newest first; `limit` is at least 1.

        `query` keeps those of which the title, or one turn (message and reply, withdrawn ones
        apart), holds each of its words, letter case ignored in all scripts. Raise
        `UnknownCursor` if this user was not given such a cursor.
        """
        where: list[str] = ["c.user_id = ?"]
        values: list[Any] = [str(user_id)]
        if cursor is not None:
            where.append("(c.last_activity_at, c.id) < (?, ?)")
            values += _place_of(cursor, user_id)

        def work(reader: Connection) -> list[Row]:
            if query:
                condition, searched = self._texts.matching_blocking(reader, user_id, query)
                where.append(condition)
                values.extend(searched)
            return reader.execute(
                f"SELECT c.* FROM conversations c WHERE {' AND '.join(where)}"  # noqa: S608
                " ORDER BY c.last_activity_at DESC, c.id DESC LIMIT ?",
                (*values, limit + 1),
            ).fetchall()

        rows = await self._database.read(work)
        more = len(rows) > limit > 0
        return Page(
            conversations=list(readable(rows[:limit], _conversation_of, "conversation")),
            next_cursor=_cursor(rows[limit - 1]) if more else None,
        )

    async def pinned(self, user_id: UserId) -> Sequence[Conversation]:
        """List a user's pinned conversations by last activity, newest first."""
        rows = await self._database.rows(
            "SELECT * FROM conversations WHERE user_id = ? AND pinned = 1"
            " ORDER BY last_activity_at DESC, id DESC",
            (user_id,),
        )
        return list(readable(rows, _conversation_of, "conversation"))

    async def matches(
        self, conversation_ids: Sequence[ConversationId], query: str
    ) -> Mapping[ConversationId, TextMatch]:
        """Return where each conversation holds the words of `query`, in its latest turn that does.

        A conversation that holds them in its title alone is left out.
        """

        def work(reader: Connection) -> dict[ConversationId, TextMatch]:
            return {
                conversation_id: found[0]
                for conversation_id in conversation_ids
                if (found := self._texts.find_blocking(reader, conversation_id, query, limit=1))
            }

        return await self._database.read(work)

    async def find(
        self, conversation_id: ConversationId, query: str, *, limit: int
    ) -> Sequence[TextMatch]:
        """Return the first place in each turn that holds the words of `query`, the latest turn
        first: that of the query as it stands, or else of one of its words.
        """
        return await self._database.read(
            lambda reader: self._texts.find_blocking(reader, conversation_id, query, limit=limit)
        )

    async def branches(self, conversation: Conversation) -> Sequence[Branch]:
        """List the other branches of the conversation's line, oldest first.

        Of those that go on alike the one with the latest activity stands for all.
        """
        return await self._database.read(lambda reader: branches_blocking(reader, conversation))

    async def change(self, conversation_id: ConversationId, change: ConversationChange) -> None:
        """Apply a change; no error if the conversation is gone."""
        values = {
            name: value
            for name, value in asdict(change).items()
            if value is not None and name not in {"pinned", "unset"}
        } | dict.fromkeys(change.unset)

        def work(writer: Connection) -> None:
            if values:
                columns = ", ".join(f"{name} = :{name}" for name in values)
                writer.execute(
                    f"UPDATE conversations SET {columns} WHERE id = :id",  # noqa: S608
                    {**values, "id": conversation_id},
                )
                self._texts.title_changed_blocking(writer, conversation_id)
            if change.pinned is not None:
                writer.execute(
                    "UPDATE conversations SET pinned = ? WHERE coalesce(root_id, id) ="
                    " (SELECT coalesce(root_id, id) FROM conversations WHERE id = ?)",
                    (change.pinned, conversation_id),
                )

        await self._database.write(work)

    async def bind_session(
        self, conversation_id: ConversationId, session_id: str | None, *, epoch: int = 0
    ) -> None:
        """Set the agent session that the model's memory is in; clears a pending fork.

        A cut of the power may lose it until a synced write follows, as that of the turn's ending
        does. Raise `LeaseLost` if the conversation has another epoch.
        """

        def work(writer: Connection) -> None:
            self._fence.require_blocking(writer, conversation_id, epoch)
            writer.execute(
                "UPDATE conversations SET session_id = ?, fork_at = NULL WHERE id = ?",
                (session_id, conversation_id),
            )

        await self._database.write(work, is_synced=False)

    async def own_sessions(self, conversation_id: ConversationId) -> Sequence[str]:
        """Return the agent sessions that only this conversation and its turns refer to."""
        rows = await self._database.rows(
            "WITH held AS (SELECT session_id FROM conversations WHERE id = :id"
            " UNION SELECT session_id FROM turns WHERE conversation_id = :id)"
            " SELECT session_id FROM held WHERE session_id IS NOT NULL"
            " AND NOT EXISTS (SELECT 1 FROM conversations c"
            " WHERE c.session_id = held.session_id AND c.id != :id)"
            " AND NOT EXISTS (SELECT 1 FROM turns t"
            " WHERE t.session_id = held.session_id AND t.conversation_id != :id)",
            {"id": conversation_id},
        )
        return [row["session_id"] for row in rows]

    async def delete(self, conversation_id: ConversationId, at: datetime) -> None:
        """Delete it with its turns and events; no error if it is gone.

        The idempotency keys of its turns stay, so that none of them runs anew. They go when
        something is deleted more than `KEY_OUTLIVES` later.
        """

        def work(writer: Connection) -> None:
            writer.execute(
                "UPDATE idempotency SET deleted_at = ? WHERE turn_id IN"
                " (SELECT id FROM turns WHERE conversation_id = ?)",
                (rfc3339(at), conversation_id),
            )
            writer.execute(
                "DELETE FROM idempotency WHERE deleted_at < ?", (rfc3339(at - KEY_OUTLIVES),)
            )
            writer.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))

        await self._database.write(work)
        self.vacuum.wake()
        with suppress(
            StoreUnavailable
        ):  # it is deleted; its text stays in the write-ahead log a while
            await self._database.checkpoint()


_CURSOR_PARTS = 3
_CHECK_CHARS = 12


def _cursor(last: Row) -> str:
    moment, last_id = str(last["last_activity_at"]), str(last["id"])
    text = f"{moment}|{last_id}|{_check(moment, last_id, last['user_id'])}"
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _place_of(cursor: str, user_id: UserId) -> list[str]:
    """Parse a cursor. Raise `UnknownCursor` if this user was not given such a cursor."""
    try:
        text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    except ValueError as exc:
        raise UnknownCursor from exc
    parts = text.split("|")
    if len(parts) != _CURSOR_PARTS or parts[2] != _check(parts[0], parts[1], user_id):
        raise UnknownCursor
    return parts[:2]


def _check(moment: str, conversation_id: str, user_id: UserId) -> str:
    """Return a checksum that detects mistakes; a place in a list is not secret."""
    text = f"{moment}|{conversation_id}|{user_id}"
    return sha256(text.encode()).hexdigest()[:_CHECK_CHARS]
