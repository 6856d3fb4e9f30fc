"""Rows to values: the only place that knows the columns' names."""

import json
from datetime import datetime

from gateway.conversations.model import Conversation, Turn, TurnEvent
from memory.clock import from_rfc3339
from memory.stores.sqlite.database import Row


def conversation_of(row: Row) -> Conversation:
    """Read a row of `conversations`."""
    return Conversation(
        id=row["id"],
        user_id=row["user_id"],
        title=row["title"],
        model=row["model"],
        memory_enabled=bool(row["memory_enabled"]),
        case_memory=bool(row["case_memory"]),
        app_code=row["app_code"],
        environment=row["environment"],
        session_id=row["session_id"],
        fork_at=row["fork_at"],
        created_at=from_rfc3339(row["created_at"]),
        last_activity_at=from_rfc3339(row["last_activity_at"]),
        turns=row["turns"],
        root_id=row["root_id"],
    )


def turn_of(row: Row) -> Turn:
    """Read a row of `turns`."""
    return Turn(
        id=row["id"],
        conversation_id=row["conversation_id"],
        user_id=row["user_id"],
        seq=row["seq"],
        state=row["state"],
        message=row["message"],
        created_at=from_rfc3339(row["created_at"]),
        started_at=_moment(row["started_at"]),
        finished_at=_moment(row["finished_at"]),
        result=None if row["result"] is None else json.loads(row["result"]),
        session_id=row["session_id"],
        last_entry_id=row["last_entry_id"],
    )


def event_of(row: Row) -> TurnEvent:
    """Read a row of `events`."""
    return TurnEvent(
        seq=row["seq"],
        conversation_id=row["conversation_id"],
        turn_id=row["turn_id"],
        n=row["n"],
        type=row["type"],
        data=row["data"],
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else from_rfc3339(text)
