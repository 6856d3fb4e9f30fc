"""Reports that were merged into cases, in SQLite: the newest, and of one voice a few."""

import sqlite3
from typing import Final

from memory.cases.case import Report
from memory.cases.store import MAX_KEPT_OF_ONE, MAX_KEPT_REPORTS
from memory.clock import rfc3339
from memory.stores.sqlite.case_rows import write_content

_TOO_MANY: Final = (
    "DELETE FROM case_reports WHERE case_id = :case AND {whose} AND seq NOT IN"
    " (SELECT seq FROM case_reports WHERE case_id = :case AND {whose} ORDER BY seq DESC LIMIT :kept)"
)
_OF_ONE: Final = _TOO_MANY.format(whose="conversation_id IS :conversation")
_OF_ALL: Final = _TOO_MANY.format(whose="true")


def put_report_blocking(connection: sqlite3.Connection, case_id: str, report: Report) -> None:
    """Keep a report with a case, as `CaseStore.apply` says, within the caller's transaction."""
    whose = report.conversation_id
    connection.execute(
        "INSERT INTO case_reports (case_id, conversation_id, at, content) VALUES (?, ?, ?, ?)",
        (case_id, whose, rfc3339(report.at), write_content(report.content)),
    )
    connection.execute(_OF_ONE, {"case": case_id, "conversation": whose, "kept": MAX_KEPT_OF_ONE})
    connection.execute(_OF_ALL, {"case": case_id, "kept": MAX_KEPT_REPORTS})
