"""Turns in SQLite."""

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from gateway.conversations.leases import NOBODY, LeaseLost, Node
from gateway.conversations.model import (
    NO_QUOTA,
    ApprovalAnswer,
    Conversation,
    Quota,
    Spending,
    Turn,
    TurnEvent,
    UserDay,
    title_of,
)
from gateway.conversations.sql.approvals import take_answer_blocking
from gateway.conversations.sql.conversations import insert_conversation
from gateway.conversations.sql.events import insert_events, without_results
from gateway.conversations.sql.excerpts import Copy
from gateway.conversations.sql.leases import Fence, clock_of, require_epoch, take_blocking
from gateway.conversations.sql.quotas import (
    AT_WORK,
    COUNT_TURN,
    OWN_LIMITS,
    UNFINISHED,
    check_quota_blocking,
    with_own,
)
from gateway.conversations.sql.rows import readable, row_of_turn, turn_of
from gateway.conversations.sql.session_turns import SessionTurns
from gateway.conversations.sql.text_index import TEXT_INDEXES
from gateway.conversations.store import (
    IdempotencyKey,
    KeyedTurn,
    SessionTurn,
)
from gateway.ids import ConversationId, TurnId, UserId, new_turn_id
from gateway.jsonsafe import json_text
from memory.clock import rfc3339
from memory.errors import StoreConflict, StoreDamaged
from memory.stores.database import Connection, Rows, SqlDatabase, decoding_rows, send
from memory.stores.sqlite.row_values import columns_of
from memory.stores.sqlite.statements import insert_blocking

_log = logging.getLogger(__name__)

_LATER = "last_activity_at = CASE WHEN last_activity_at < ? THEN ? ELSE last_activity_at END"
_DAY = "SELECT turns, cost_usd FROM user_days WHERE user_id = ? AND day = ?"
_TOTAL = "CAST(coalesce(sum(CAST(json_extract(result, '$.usage.{}') AS BIGINT)), 0) AS BIGINT)"
_SPENDING = (
    "SELECT count(*) AS turns,"  # noqa: S608  fixed paths
    f" {_TOTAL.format('input_tokens')} AS input_tokens,"
    f" {_TOTAL.format('cache_read_input_tokens')}"
    f" + {_TOTAL.format('cache_creation_input_tokens')} AS cached_tokens,"
    f" {_TOTAL.format('output_tokens')} AS output_tokens,"
    " coalesce(sum(CAST(json_extract(result, '$.cost_usd') AS DOUBLE PRECISION)), 0.0) AS cost_usd"
    " FROM turns WHERE conversation_id = ? AND state = 'completed' AND copy_of IS NULL"
)


def _count_cost_blocking(writer: Connection, turn: Turn) -> None:
    """Count what a turn cost that ends; once, however often its end is stored."""
    cost = (turn.result or {}).get("cost_usd")
    if cost and turn.state == "completed" and turn.finished_at is not None:
        writer.execute(
            "INSERT INTO user_days (user_id, day, cost_usd)"
            " SELECT user_id, ?, ? FROM turns WHERE id = ? AND state IN ('queued', 'running')"
            " ON CONFLICT (user_id, day) DO UPDATE"
            " SET cost_usd = user_days.cost_usd + excluded.cost_usd",
            (turn.finished_at.date().isoformat(), cost, turn.id),
        )


def _with_epoch(turn: Turn, epochs: Mapping[ConversationId, int]) -> Turn:
    return replace(turn, epoch=epochs.get(turn.conversation_id, 0))


def _end_blocking(writer: Connection, turns: Sequence[Turn]) -> None:
    """Store how turns ended."""
    for turn in turns:
        _count_cost_blocking(writer, turn)
    writer.executemany(
        "UPDATE turns SET state = :state, started_at = :started_at,"
        " finished_at = :finished_at, result = :result, session_id = :session_id,"
        " last_entry_id = :last_entry_id, epoch = :epoch WHERE id = :id",
        map(row_of_turn, turns),
    )
    writer.executemany(
        f"UPDATE conversations SET {_LATER} WHERE id = ?",  # noqa: S608
        [
            (*[rfc3339(turn.finished_at)] * 2, turn.conversation_id)
            for turn in turns
            if turn.finished_at is not None
        ],
    )


class TurnStore:
    """Turns: the queue, the running ones, the history."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._fence = Fence(database)
        self._clock = clock_of(database)
        self._texts = TEXT_INDEXES[database.engine]
        self._sessions = SessionTurns(database)

    async def accept(
        self,
        turn: Turn,
        *,
        create: Conversation | None = None,
        key: IdempotencyKey | None = None,
        events: Sequence[TurnEvent] = (),
        answer: ApprovalAnswer | None = None,
        project_id: str | None = None,
        quota: Quota = NO_QUOTA,
        node: Node | None = None,
    ) -> Turn:
        """Store a queued or running turn with its first events, atomically.

        `create` is stored with it, so is `answer`, the answer that starts the turn, and so is
        `project_id` as the conversation's, unless it is None. The turn's `seq` is assigned here,
        from 1 within its conversation without gaps. The conversation's last activity moves, never
        back, and an empty title is set from the message. Raise `StoreConflict` if the key or an id
        is taken, there is no such conversation, or the approval that is answered is not open,
        `QuotaReached` if the user's quota allows no further turn (their own limits, and for the
        others those of `quota`), and `LeaseLost` if the conversation has another epoch than the
        turn. A `node` takes the conversation that it creates, and the turn gets its epoch; None:
        nobody takes it.
        """

        def work(writer: Connection) -> Turn:
            where = turn.conversation_id
            limits = send(writer, OWN_LIMITS, (turn.user_id,))
            used = send(writer, COUNT_TURN, (turn.user_id, turn.created_at.date().isoformat()))
            taker = None if create is None else node
            leases = self._fence.read_blocking(writer, [where]) if taker is None else None
            own = with_own(quota, limits())
            check_quota_blocking(writer, turn, own, used()[0])
            if create is not None:
                insert_conversation(writer, create)
            epoch = self._epoch_blocking(writer, turn, taker, leases)
            added = send(
                writer,
                "INSERT INTO turns (id, conversation_id, user_id, seq, state, message,"
                " created_at, started_at, approval_id, schedule, epoch) SELECT :id,"
                " :conversation_id, :user_id, coalesce(max(seq), 0) + 1, :state, :message,"
                " :created_at, :started_at, :approval_id, :schedule, :epoch"
                " FROM turns WHERE conversation_id = :conversation_id RETURNING seq",
                row_of_turn(turn) | {"epoch": epoch},
            )
            title = title_of(turn.message)
            titles = send(
                writer,
                "UPDATE conversations SET title = CASE WHEN title = '' THEN ? ELSE title END,"  # noqa: S608
                f" {_LATER} WHERE id = ? RETURNING title",
                (title, *[rfc3339(turn.created_at)] * 2, where),
            )
            if project_id is not None:
                writer.execute(
                    "UPDATE conversations SET project_id = ? WHERE id = ?",
                    (project_id, turn.conversation_id),
                )
            if key is not None:
                row = columns_of(key, user_id=turn.user_id, turn_id=turn.id)
                insert_blocking(writer, "idempotency", row)
            insert_events(writer, events)
            if answer is not None and not take_answer_blocking(writer, answer):
                raise StoreConflict("The approval is not open.")
            seq = added()[0]["seq"]
            if any(row["title"] == title for row in titles()):  # it may be new
                self._texts.title_changed_blocking(writer, where)
            return replace(turn, seq=seq, epoch=epoch)

        return await self._database.write(work)

    def _epoch_blocking(
        self, writer: Connection, turn: Turn, taker: Node | None, leases: Rows | None
    ) -> int:
        """Return the epoch of a turn that is accepted: that of its lease, if it was read; otherwise
        a `taker` takes its conversation, which is new.

        Raise `LeaseLost` if the conversation has another epoch than the turn, or cannot be taken.
        """
        where, lease = turn.conversation_id, None
        if leases is not None:
            require_epoch(leases, where, turn.epoch)
            return turn.epoch
        if taker is not None:
            lease = take_blocking(writer, taker, where, self._clock(writer))
        if lease is None:
            raise LeaseLost("This server takes no more conversations.")
        return lease.epoch

    async def used_on(self, user_id: UserId, day: date) -> UserDay:
        """Return what a user has used on a day of UTC."""
        row = await self._database.row(_DAY, (user_id, day.isoformat()))
        return UserDay() if row is None else UserDay(**dict(row))

    async def count_unfinished(self, user_id: UserId) -> int:
        """Return how many turns of a user wait or run."""
        return int(await self._database.scalar(UNFINISHED, (user_id,)))

    async def quota_of(self, user_id: UserId, default: Quota) -> Quota:
        """Return a user's quota: their own limits, and for the others those of `default`."""
        return with_own(default, await self._database.rows(OWN_LIMITS, (user_id,)))

    async def count_at_work(self, user_id: UserId, *, besides: str = "") -> int:
        """Return in how many conversations of a user, besides that one, turns wait or run."""
        return int(await self._database.scalar(AT_WORK, (user_id, besides)))

    async def find_key(self, user_id: UserId, key: str) -> KeyedTurn | None:
        """Return the turn of a user's key, also if it was deleted; or None."""
        return await self._database.value(
            lambda row: KeyedTurn(**row),
            "SELECT turn_id, request_hash FROM idempotency WHERE user_id = ? AND key = ?",
            (user_id, key),
        )

    async def withdraw_key(self, user_id: UserId, key: str, at: datetime) -> None:
        """Refuse messages under a key from now on; its `KeyedTurn` has an empty id then.

        Raise `StoreConflict` if one was taken, or the key was withdrawn.
        """
        row = {
            "user_id": user_id,
            "key": key,
            "request_hash": "",
            "turn_id": "",
            "deleted_at": rfc3339(at),  # it goes as those of deleted turns do
        }
        await self._database.write(lambda writer: insert_blocking(writer, "idempotency", row))

    async def get(self, turn_id: TurnId) -> Turn | None:
        """Return the turn, or None."""
        return await self._database.value(turn_of, "SELECT * FROM turns WHERE id = ?", (turn_id,))

    async def start(self, turn_id: TurnId, at: datetime, *, epoch: int = 0) -> None:
        """Mark a queued turn as running; one that is not queued stays as it is, and so does one
        whose conversation has another epoch.
        """

        def work(writer: Connection) -> None:
            found = writer.execute(
                "UPDATE turns SET state = 'running', started_at = ?"
                " WHERE id = ? AND state = 'queued' RETURNING conversation_id",
                (rfc3339(at), turn_id),
            )
            for row in found.fetchall():
                self._fence.require_blocking(writer, row["conversation_id"], epoch)

        with suppress(LeaseLost):
            await self._database.write(work)

    async def finish(
        self,
        turns: Sequence[Turn],
        events: Sequence[TurnEvent],
        *,
        epochs: Mapping[ConversationId, int] = NOBODY,
        is_synced: bool = True,
    ) -> Collection[ConversationId]:
        """Store how turns ended (state, times, result, session) and events, all or none.

        The conversations' last activity moves. Idempotent; a turn that is gone is left out. If not
        `is_synced`, a cut of the power, not the end of the process, may lose it until a synced
        write follows. Raise `StoreConflict` if an event's `seq` in its conversation, or its `n` in
        its turn, is another's. Conversations are fenced as in `EventStore.append`; turns get their
        epoch.
        """

        def work(writer: Connection) -> Collection[ConversationId]:
            ids = {turn.conversation_id for turn in turns}
            ids |= {event.conversation_id for event in events}
            lost = self._fence.lost_blocking(writer, ids, epochs)
            mine = [turn for turn in turns if turn.conversation_id not in lost]
            _end_blocking(writer, [_with_epoch(turn, epochs) for turn in mine])
            self._texts.turns_ended_blocking(writer, mine)
            told = [event for event in events if event.conversation_id not in lost]
            insert_events(writer, without_results(told, mine))
            return lost

        return await self._database.write(work, is_synced=is_synced)

    async def add_notice(self, turn_id: TurnId, notice: Mapping[str, Any]) -> bool:
        """Add a notice to the result of a completed turn; return False if there is none.

        The turn's last event has it from then on, too.
        """

        def work(writer: Connection) -> bool:
            row = writer.execute(
                "SELECT result FROM turns"
                " WHERE id = ? AND state = 'completed' AND result IS NOT NULL",
                (turn_id,),
            ).fetchone()
            if row is not None:
                with decoding_rows():
                    result = json.loads(row["result"])
                    result.setdefault("notices", []).append(notice)
                writer.execute(
                    "UPDATE turns SET result = ? WHERE id = ?", (json_text(result), turn_id)
                )
            return row is not None

        return await self._database.write(work)

    async def unfinished(
        self,
        on_damaged: Callable[[], None] = lambda: None,
        *,
        of: ConversationId | None = None,
    ) -> Sequence[Turn]:
        """List all queued and running turns, or those `of` a conversation, for recovery.

        Each conversation's in the order in which they were accepted, whatever the clock said. One
        that is damaged is left out, and `on_damaged` called for it; if its result alone is, it has
        none.
        """
        which, values = ("", ()) if of is None else (" AND conversation_id = ?", (of,))
        places = await self._database.rows(
            "SELECT rowid AS place FROM turns"  # noqa: S608
            f" WHERE state IN ('queued', 'running'){which} ORDER BY seq, created_at",
            values,
        )
        turns: list[Turn] = []
        for row in places:  # one that cannot be decoded as text would hide the others
            try:
                turns += await self._unfinished_at(row["place"])
            except StoreDamaged:
                _log.exception("turn_damaged", extra={"rowid": row["place"]})
                on_damaged()
        return turns

    async def _unfinished_at(self, place: int) -> list[Turn]:
        rows = await self._database.rows("SELECT * FROM turns WHERE rowid = ?", (place,))
        found = [turn for row in rows for turn in readable([row], turn_of, "turn")]
        if found:
            return found
        with decoding_rows():  # perhaps its result alone is damaged; its events have the rest
            return [turn_of({**dict(row), "result": None}) for row in rows]

    async def history(
        self, conversation_id: ConversationId, *, limit: int, before_seq: int | None = None
    ) -> Sequence[Turn]:
        """List the last `limit` turns (before `before_seq`) that were not withdrawn, oldest first.

        One that is damaged is left out.
        """
        turns: list[Turn] = []
        while (wanted := limit - len(turns)) > 0:  # a damaged one is made up for by an older one
            rows = await self._database.rows(
                "SELECT * FROM turns WHERE conversation_id = ? AND state != 'withdrawn'"
                " AND (CAST(? AS BIGINT) IS NULL OR seq < ?) ORDER BY seq DESC LIMIT ?",
                (conversation_id, before_seq, before_seq, wanted),
            )
            turns += readable(rows, turn_of, "turn")
            if len(rows) < wanted:
                break
            before_seq = rows[-1]["seq"]
        return turns[::-1]

    async def in_session(self, conversation: Conversation) -> Sequence[SessionTurn]:
        """List the last completed turns that the conversation's agent has word for word, oldest
        first.

        At most `MAX_SHOWN_TURNS`; none up to the last one in which the session was summarised.
        """
        return await self._sessions.of(conversation)

    async def spending(self, conversation_id: ConversationId) -> Spending:
        """Return what the conversation's completed turns have used."""
        (row,) = await self._database.rows(_SPENDING, (conversation_id,))
        return Spending(**dict(row))

    async def fork_point(self, conversation_id: ConversationId, until_seq: int) -> Turn | None:
        """Return the last turn up to `until_seq` that left an agent session and an entry in it."""
        return await self._database.value(
            turn_of,
            "SELECT * FROM turns WHERE conversation_id = ? AND seq <= ?"
            " AND session_id IS NOT NULL AND last_entry_id IS NOT NULL ORDER BY seq DESC LIMIT 1",
            (conversation_id, until_seq),
        )

    async def copy_history(
        self, source: ConversationId, until_seq: int, target: Conversation
    ) -> None:
        """Create `target` with copies of the completed turns up to `until_seq`, ids their own.

        The copies keep their order, times and sessions, and belong to `target`'s user. Events are
        not copied. Raise `StoreConflict` if the target's id is taken.
        """

        def work(writer: Connection) -> None:
            insert_conversation(writer, target)
            rows = writer.execute(
                "SELECT id FROM turns WHERE conversation_id = ? AND seq <= ?"
                " AND state = 'completed' ORDER BY seq",
                (source, until_seq),
            ).fetchall()
            copies = [
                Copy(id=new_turn_id(), copied=row["id"], target=target.id, user=target.user_id)
                for row in rows
            ]
            writer.executemany(
                "INSERT INTO turns (id, conversation_id, user_id, seq, message, created_at, state,"
                " started_at, finished_at, result, session_id, last_entry_id, schedule, copy_of,"
                " kept_out)"
                " SELECT :id, :target, :user, seq, message, created_at, state, started_at,"
                " finished_at, result, session_id, last_entry_id, schedule, coalesce(copy_of, id),"
                " kept_out FROM turns WHERE id = :copied",
                copies,
            )
            writer.executemany(
                "INSERT INTO file_changes (turn_id, data)"
                " SELECT :id, data FROM file_changes WHERE turn_id = :copied",
                copies,
            )
            self._texts.title_changed_blocking(writer, target.id)
            self._texts.turns_copied_blocking(writer, copies)

        await self._database.write(work)
