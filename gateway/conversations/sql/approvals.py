"""Approvals in SQLite."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from gateway.conversations.leases import Node
from gateway.conversations.model import Approval, ApprovalAnswer
from gateway.conversations.sql.leases import Fence
from gateway.conversations.sql.rows import readable
from gateway.ids import ApprovalId, ConversationId, TurnId, UserId
from gateway.jsonsafe import json_text
from memory.clock import rfc3339
from memory.stores.database import Connection, Row, SqlDatabase
from memory.stores.sqlite.row_values import columns_of, read_value
from memory.stores.sqlite.statements import insert_blocking

_LOST = (
    "UPDATE approvals SET state = 'lost', ended_at = :created_at, input = '{}', hidden = '[]',"
    " question = NULL"
    " WHERE conversation_id = :conversation_id AND fingerprint = :fingerprint"
    " AND turn_id != :turn_id AND state = 'open'"
)
_ANSWERED = (
    "UPDATE approvals SET state = 'answered', decision = :decision, message = :message,"
    " answers = :answers, ended_at = :at, question = NULL,"
    " input = CASE WHEN :keeps_input = 1 THEN input ELSE '{}' END,"
    " hidden = CASE WHEN :keeps_input = 1 THEN hidden ELSE '[]' END"
    " WHERE id = :approval_id AND state = 'open' RETURNING id"
)

_ELSEWHERE = (
    "SELECT approvals.id FROM approvals JOIN turns ON turns.id = turn_id JOIN leases"
    " ON leases.conversation_id = approvals.conversation_id WHERE approvals.user_id = ?"
    " AND approvals.state = 'open' AND turns.state = 'running' AND incarnation != ?"
)


def _approval_of(row: Row) -> Approval:
    return read_value(
        Approval,
        row,
        input=json.loads(row["input"]),
        hidden=json.loads(row["hidden"]),
        answers=None if row["answers"] is None else json.loads(row["answers"]),
        question=None if row["question"] is None else json.loads(row["question"]),
    )


def take_answer_blocking(writer: Connection, answer: ApprovalAnswer) -> bool:
    """Store an answer within an open transaction; return False if the approval is not open."""
    answers = None if answer.answers is None else json_text(answer.answers)
    return bool(writer.execute(_ANSWERED, columns_of(answer, answers=answers)).fetchall())


class ApprovalStore:
    """What persons are asked about calls. Approvals go with their conversation.

    When a turn is completed, the input of its approvals that are not open is dropped, and that of
    the approval whose answer started it. When a turn is withdrawn, the approval whose answer
    started it is open again. What takes an `epoch` raises `LeaseLost` if the conversation has
    another one.
    """

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._fence = Fence(database)

    async def add(self, approval: Approval, *, epoch: int = 0) -> None:
        """Store an open approval.

        Open ones of earlier turns of the conversation with the same fingerprint become `lost`.
        """
        row = columns_of(
            approval,
            input=json_text(approval.input),
            hidden=json_text(approval.hidden),
            answers=None if approval.answers is None else json_text(approval.answers),
            question=None if approval.question is None else json_text(approval.question),
        )

        def work(writer: Connection) -> None:
            self._fence.require_blocking(writer, approval.conversation_id, epoch)
            writer.execute(_LOST, row)
            insert_blocking(writer, "approvals", row)

        await self._database.write(work)

    async def get(self, approval_id: ApprovalId, user_id: UserId) -> Approval | None:
        """Return the approval; None if there is none of that id or it is another user's."""
        return await self._database.value(
            _approval_of,
            "SELECT * FROM approvals WHERE id = ? AND user_id = ?",
            (approval_id, user_id),
        )

    async def answer(self, answer: ApprovalAnswer) -> bool:
        """Store an answer; return False, and change nothing, if the approval is not open."""
        return await self._database.write(lambda writer: take_answer_blocking(writer, answer))

    async def extend(
        self, approval_id: ApprovalId, question: Mapping[str, Any], *, epoch: int = 0
    ) -> None:
        """Replace the question of an open approval; any other stays as it is."""
        await self._change(
            "UPDATE approvals SET question = ? WHERE id = ? AND state = 'open'"
            " RETURNING conversation_id",
            (json_text(question), approval_id),
            epoch,
        )

    async def withdraw(self, approval_id: ApprovalId, at: datetime, *, epoch: int = 0) -> None:
        """Mark an open approval as withdrawn; any other stays as it is."""
        await self._change(
            "UPDATE approvals SET state = 'withdrawn', ended_at = ?, input = '{}', hidden = '[]',"
            " question = NULL WHERE id = ? AND state = 'open' RETURNING conversation_id",
            (rfc3339(at), approval_id),
            epoch,
        )

    async def reopen(self, approval_id: ApprovalId, *, epoch: int = 0) -> None:
        """Take an answer back that had no effect; one that is not answered stays as it is."""
        await self._change(
            "UPDATE approvals SET state = 'open', decision = NULL, message = '', answers = NULL,"
            " ended_at = NULL WHERE id = ? AND state = 'answered' RETURNING conversation_id",
            (approval_id,),
            epoch,
        )

    async def _change(self, sql: str, values: Sequence[str], epoch: int) -> None:
        """Change an approval, unless its conversation has another epoch."""

        def work(writer: Connection) -> None:
            for row in writer.execute(sql, values).fetchall():
                self._fence.require_blocking(writer, row["conversation_id"], epoch)

        await self._database.write(work)

    async def listed(
        self, user_id: UserId, conversation_id: ConversationId | None, *, lost_since: datetime
    ) -> Sequence[Approval]:
        """List a user's open approvals, and those lost since a moment, oldest first."""
        rows = await self._database.rows(
            "SELECT * FROM approvals WHERE user_id = ? AND state IN ('open', 'lost')"
            " AND (CAST(? AS TEXT) IS NULL OR conversation_id = ?)"
            " AND (state = 'open' OR ended_at > ?) ORDER BY created_at, id",
            (user_id, conversation_id, conversation_id, rfc3339(lost_since)),
        )
        return list(readable(rows, _approval_of, "approval"))

    async def asked_elsewhere(self, user_id: UserId, node: Node) -> Collection[ApprovalId]:
        """Return a user's open approvals whose turns run at other nodes."""
        rows = await self._database.rows(_ELSEWHERE, (user_id, node.incarnation))
        return {row["id"] for row in rows}

    async def of_turn(self, turn_id: TurnId) -> Sequence[Approval]:
        """List the approvals of a turn's calls, oldest first."""
        rows = await self._database.rows(
            "SELECT * FROM approvals WHERE turn_id = ? ORDER BY created_at, call_index", (turn_id,)
        )
        return list(readable(rows, _approval_of, "approval"))
