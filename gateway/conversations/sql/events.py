"""Events in SQLite."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from gateway.conversations.leases import NOBODY
from gateway.conversations.model import COMPLETED, Head, Turn, TurnEvent
from gateway.conversations.sql.leases import Fence
from gateway.ids import ConversationId, TurnId
from gateway.jsonsafe import json_text
from memory.errors import StoreDamaged
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.row_values import read_value
from memory.stores.sqlite.statements import IN_IDS, id_list

_COLUMNS = (
    "SELECT seq, conversation_id, turn_id, n, type, CASE WHEN data != '' THEN data"
    " ELSE coalesce((SELECT result FROM turns WHERE turns.id = events.turn_id), '{}') END AS data"
)
"""The last event of a turn has no data of its own if it is the turn's result."""
_SELECT = f"{_COLUMNS} FROM events "
_HEADS = (
    "SELECT id, coalesce((SELECT max(seq) FROM events"  # noqa: S608  names of our own
    " WHERE conversation_id = conversations.id"
    " AND seq <= :most), 0) AS last_seq, (SELECT id FROM turns"
    " WHERE conversation_id = conversations.id AND state = 'completed' ORDER BY seq DESC LIMIT 1)"
    f" AS ended FROM conversations WHERE id IN {IN_IDS}"
)
_AFTER_EACH = (
    # a plain join would read the events of all conversations
    f"{_COLUMNS} FROM unnest(CAST(:ids AS TEXT[]),"  # noqa: S608  as above
    " CAST(:seqs AS BIGINT[])) AS places (id, last) CROSS JOIN LATERAL"
    " (SELECT * FROM events WHERE conversation_id = places.id AND seq > places.last"
    " AND seq <= :most ORDER BY seq LIMIT :limit) AS events"
    " ORDER BY conversation_id, seq LIMIT :limit"
)
"""In PostgreSQL, in one statement; in a file others write nothing."""
_MOST_EVENTS = 1_000_000_000
"""No turn has as many; a higher number is damage, and none could follow it."""
_HIGHEST_SEQ = 10**15
"""The same for a place in the order of a conversation."""
_log = logging.getLogger(__name__)
_event_of = partial(read_value, TurnEvent)


def insert_events(writer: Connection, events: Sequence[TurnEvent]) -> None:
    """Insert within an open transaction; a deleted conversation takes no more events."""
    writer.executemany(
        "INSERT INTO events (own_seq, conversation_id, turn_id, n, type, data)"
        " SELECT :seq, :conversation, :turn, :n, :type, :data"
        " WHERE EXISTS (SELECT 1 FROM conversations WHERE id = :conversation)"
        " AND NOT EXISTS (SELECT 1 FROM events WHERE conversation_id = :conversation"
        " AND seq = :seq AND turn_id = :turn AND n = :n)",
        [
            {
                "seq": event.seq,
                "conversation": event.conversation_id,
                "turn": event.turn_id,
                "n": event.n,
                "type": event.type,
                "data": event.data,
            }
            for event in events
        ],
    )


def without_results(events: Sequence[TurnEvent], turns: Sequence[Turn]) -> list[TurnEvent]:
    """Return events to store with the turns that they complete; a result is stored with its turn
    alone.
    """
    results = {turn.id: json_text(turn.result) for turn in turns}
    return [
        replace(event, data="")
        if event.type == COMPLETED and event.data == results.get(event.turn_id)
        else event
        for event in events
    ]


class EventStore:
    """The events of all turns; those of a conversation are in one order."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._fence = Fence(database)

    async def last_seq(self, conversation_id: ConversationId) -> int:
        """Return the `seq` of a conversation's last event; 0 if it has none."""
        sql = "SELECT max(seq) FROM events WHERE conversation_id = ? AND seq <= ?"
        return max(0, await self._database.scalar(sql, (conversation_id, _HIGHEST_SEQ)) or 0)

    async def heads(
        self, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Head]:
        """Return how far conversations have come, without those that are gone."""
        values = {"ids": id_list(conversation_ids), "most": _HIGHEST_SEQ}
        return {
            row["id"]: Head(last_seq=max(0, row["last_seq"]), ended=row["ended"])
            for row in await self._database.rows(_HEADS, values)
        }

    async def set_aside(self) -> None:
        """Move events out of the way whose damaged place would keep others from being stored."""
        if self._database.engine != "sqlite":  # others give places whatever the highest one is
            return

        def work(writer: Connection) -> int:
            return writer.execute(  # behind the highest one SQLite would add no row
                "UPDATE events SET place = -place WHERE place >"
                " (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events')"
            ).rowcount

        if damaged := await self._database.write(work):
            _log.error("events_set_aside", extra={"count": damaged})

    async def append(
        self,
        events: Sequence[TurnEvent],
        *,
        epochs: Mapping[ConversationId, int] = NOBODY,
        is_synced: bool = True,
    ) -> Collection[ConversationId]:
        """Store events, all or none; each carries its `seq`, higher than any stored before in its
        conversation.

        Nothing is stored of the conversations that are returned: they have another epoch than
        `epochs` says, which is 0 for those that it does not name.

        Idempotent: an event that is stored already is left as it is. Events of a conversation that
        is gone are left out. `is_synced` as in `TurnStore.finish`. Raise `StoreConflict` if an
        event's `seq` in its conversation, or its `n` in its turn, is another's.
        """

        def work(writer: Connection) -> Collection[ConversationId]:
            lost = self._fence.lost_blocking(
                writer, {event.conversation_id for event in events}, epochs
            )
            kept = [event for event in events if event.conversation_id not in lost]
            insert_events(writer, kept)
            return lost

        return await self._database.write(work, is_synced=is_synced)

    async def last_n(self, turn_id: TurnId) -> int:
        """Return the highest `n` of a turn; 0 if it has no events."""
        sql = "SELECT max(n) FROM events WHERE turn_id = ? AND n <= ?"
        return max(0, await self._database.scalar(sql, (turn_id, _MOST_EVENTS)) or 0)

    async def find(self, turn_id: TurnId, n: int) -> int | None:
        """Return the `seq` of one event, or None."""
        sql = "SELECT seq FROM events WHERE turn_id = ? AND n = ?"
        seq: int | None = await self._database.scalar(sql, (turn_id, n))
        return seq

    async def after(
        self,
        conversation_id: ConversationId,
        seq: int,
        *,
        limit: int,
        turn_id: TurnId | None = None,
    ) -> Sequence[TurnEvent]:
        """List a conversation's (or one turn's) events after `seq`, in order, at most `limit`.

        One that cannot be read is left out.
        """
        where = "conversation_id = :conversation_id AND seq <= :most AND seq > :seq ORDER BY seq"
        if turn_id is not None:
            where = (
                "turn_id = :turn_id AND seq > :seq AND seq <= :most AND n > coalesce("
                "(SELECT n FROM events WHERE conversation_id = :conversation_id AND seq = :seq"
                " AND turn_id = :turn_id), 0) ORDER BY n"
            )
        values = {
            "conversation_id": conversation_id,
            "turn_id": turn_id,
            "seq": seq,
            "most": _HIGHEST_SEQ,
        }
        try:
            sql = f"{_SELECT} WHERE {where} LIMIT :limit"
            return await self._database.values(_event_of, sql, {**values, "limit": limit})
        except StoreDamaged:  # one that cannot be decoded as text would hide the others
            sql = f"SELECT place FROM events WHERE {where}"  # noqa: S608
            places = [row["place"] for row in await self._database.rows(sql, values)]
            return await self._readable(places, limit)

    async def _readable(self, places: Sequence[int], limit: int) -> Sequence[TurnEvent]:
        sql = f"{_SELECT} WHERE place = ?"
        found: list[TurnEvent] = []
        for place in places:
            try:
                found += await self._database.values(_event_of, sql, (place,))
            except StoreDamaged:
                _log.exception("event_damaged", extra={"rowid": place})
            if len(found) == limit:
                break
        return found

    async def after_each(
        self, last_seqs: Mapping[ConversationId, int], *, limit: int
    ) -> Sequence[TurnEvent]:
        """List the events of several conversations after the `seq` of each, at most `limit` of
        all of them: a conversation's are together, and in order.

        Raise `StoreDamaged` if one cannot be read.
        """
        if self._database.engine == "sqlite":
            behind = [await self.after(where, seq, limit=limit) for where, seq in last_seqs.items()]
            return [event for events in behind for event in events][:limit]
        values = {"ids": list(last_seqs), "seqs": list(last_seqs.values())}
        limits = {"most": _HIGHEST_SEQ, "limit": limit}
        return await self._database.values(_event_of, _AFTER_EACH, values | limits)

    async def of_call(self, turn_id: TurnId, index: int) -> Sequence[TurnEvent]:
        """List the `tool.started` and `tool.finished` events of the call `index` of a turn, in
        order.

        Of a turn that a fork copied, those of the turn that was copied first; none if it was
        deleted. Events without an `index` are listed with every call.
        """
        return await self._database.values(
            _event_of,
            "SELECT * FROM events WHERE turn_id ="
            " coalesce((SELECT copy_of FROM turns WHERE id = :turn_id), :turn_id)"
            " AND type IN ('tool.started', 'tool.finished')"
            " AND coalesce(CAST(json_extract(data, '$.index') AS BIGINT), :index) = :index"
            " ORDER BY n",
            {"turn_id": turn_id, "index": index},
        )
