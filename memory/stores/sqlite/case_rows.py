"""Cases, votes, relations, history and reports as rows; a case and what it says are JSON."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from memory.cases.case import (
    Case,
    CaseContent,
    CaseMetadata,
    HistoryEntry,
    RelatedCase,
    Report,
    Vote,
)
from memory.clock import from_rfc3339, rfc3339
from memory.scope import Scope
from memory.stores.sqlite.driver_errors import decoding_rows

Row = Mapping[str, Any] | sqlite3.Row


def write_case(case: Case) -> str:
    """Return a case as JSON; its fields are always in the same order."""
    value = asdict(case) | {"scope": {"owner_id": case.scope.owner_id, **case.scope.labels}}
    return json.dumps(value, ensure_ascii=False, default=rfc3339)


@decoding_rows()
def read_case(value: str) -> Case:
    """Return the case that `write_case` wrote."""
    fields = json.loads(value)
    fields.pop("own_metadata", None)  # written by earlier versions
    last = fields["last_feedback_at"]
    return Case(
        **fields
        | {
            "scope": Scope(**fields["scope"]),
            "content": _content_of(fields["content"]),
            "authors": tuple(fields["authors"]),
            "review_reasons": tuple(fields["review_reasons"]),
            "last_feedback_at": from_rfc3339(last) if last is not None else None,
            "created_at": from_rfc3339(fields["created_at"]),
            "updated_at": from_rfc3339(fields["updated_at"]),
        }
    )


def write_content(content: CaseContent) -> str:
    """Return what a case says as JSON."""
    return json.dumps(asdict(content), ensure_ascii=False)


def _content_of(fields: Mapping[str, Any]) -> CaseContent:
    known = fields["metadata"]
    lists = {name: tuple(known[name]) for name in ("related_services", "tags")}
    return CaseContent(**{**fields, "metadata": CaseMetadata(**known | lists)})


@decoding_rows()
def vote_of(row: Row) -> Vote:
    """Return the vote in a row of `case_votes`."""
    fields = dict(row)
    helpful = None if fields["helpful"] is None else bool(fields["helpful"])
    return Vote(**fields | {"helpful": helpful, "at": from_rfc3339(fields["at"])})


def row_of_vote(vote: Vote) -> dict[str, Any]:
    """Return the columns of `case_votes`."""
    return asdict(vote) | {"at": rfc3339(vote.at)}


@decoding_rows()
def related_of(row: Row) -> RelatedCase:
    """Return a relation as one end sees it."""
    return RelatedCase(case_id=row["other"], relation=row["relation"], score=row["score"])


@decoding_rows()
def history_of(row: Row) -> HistoryEntry:
    """Return the entry in a row of `case_history`."""
    return HistoryEntry(
        at=from_rfc3339(row["at"]),
        event=row["event"],
        by=row["by"],
        user_id=row["user_id"],
        conversation_id=row["conversation_id"],
        details=json.loads(row["details"]),
    )


def row_of_history(case_id: str, entry: HistoryEntry) -> dict[str, Any]:
    """Return the columns of `case_history`."""
    return asdict(entry) | {
        "case_id": case_id,
        "at": rfc3339(entry.at),
        "details": json.dumps(dict(entry.details), ensure_ascii=False),
    }


@decoding_rows()
def report_of(row: Row) -> Report:
    """Return the report in a row of `case_reports`."""
    return Report(
        content=_content_of(json.loads(row["content"])),
        conversation_id=row["conversation_id"],
        at=from_rfc3339(row["at"]),
    )
