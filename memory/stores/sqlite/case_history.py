"""The history of cases in SQLite: what was judged over and over by one voice takes one place.

So does telling it again: that a report was merged stays as long as the report does, and longer only where
the case was changed by it. Its number says how many came before.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from memory.cases.case import HistoryEntry
from memory.cases.store import MAX_KEPT_REPORTS, MAX_KEPT_VOTINGS
from memory.clock import rfc3339

_BY_THE_SAME: Final = (
    "case_id = :case AND by = :by AND user_id = :user AND conversation_id IS :conversation"
)
_WROTE_LAST: Final = (
    "ifnull((SELECT max(seq) FROM case_history"  # noqa: S608  a text of our own
    f" WHERE {_BY_THE_SAME} AND event IN ('created', 'updated')), 0)"
)
_CHANGED_NOTHING: Final = (
    "json_extract(details, '$.fields') IS NULL AND json_extract(details, '$.confidence') IS NULL"
)


def append_history_blocking(
    connection: sqlite3.Connection, case_id: str, entries: Sequence[HistoryEntry]
) -> None:
    """Put entries at the end of a case's history, as `CaseStore.apply` says, within the caller's transaction."""
    for entry in entries:
        whose = {
            "case": case_id,
            "by": entry.by,
            "user": entry.user_id,
            "conversation": entry.conversation_id,
        }
        told = _in_place_of_the_last(connection, whose, entry) if _is_vote(entry) else entry
        connection.execute(
            "INSERT INTO case_history (case_id, at, event, by, user_id, conversation_id, details)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            _values(case_id, told),
        )
        if entry.event in {"feedback", "lifecycle"}:
            connection.execute(
                "DELETE FROM case_history WHERE seq IN (SELECT seq FROM case_history"  # noqa: S608  a text of our own
                f" WHERE {_BY_THE_SAME} AND event IN ('feedback', 'lifecycle')"
                f" AND seq > {_WROTE_LAST} ORDER BY seq DESC LIMIT -1 OFFSET :kept)",
                {**whose, "kept": 2 * MAX_KEPT_VOTINGS},
            )
        elif entry.event == "merged":
            connection.execute(
                "DELETE FROM case_history WHERE seq IN (SELECT seq FROM case_history"  # noqa: S608  a text of our own
                f" WHERE case_id = ? AND event = 'merged' AND {_CHANGED_NOTHING}"
                " ORDER BY seq DESC LIMIT -1 OFFSET ?)",
                (case_id, MAX_KEPT_REPORTS),
            )


def _is_vote(entry: HistoryEntry) -> bool:
    return entry.event == "feedback"


def _in_place_of_the_last(
    connection: sqlite3.Connection, whose: Mapping[str, str | None], entry: HistoryEntry
) -> HistoryEntry:
    last = connection.execute(
        "SELECT seq, event, details FROM case_history"  # noqa: S608  a text of our own
        f" WHERE {_BY_THE_SAME} ORDER BY seq DESC LIMIT 1",
        whose,
    ).fetchone()
    if last is None or last[1] != "feedback":
        return entry
    connection.execute("DELETE FROM case_history WHERE seq = ?", (last[0],))
    replaced = json.loads(last[2]).get("replaced", 0) + 1
    return replace(entry, details={**entry.details, "replaced": replaced})


def _values(case_id: str, entry: HistoryEntry) -> tuple[Any, ...]:
    return (
        case_id,
        rfc3339(entry.at),
        entry.event,
        entry.by,
        entry.user_id,
        entry.conversation_id,
        json.dumps(dict(entry.details), ensure_ascii=False),
    )
