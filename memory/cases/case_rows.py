"""Cases, votes, relations and history as rows; a case and what it says are JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from memory.cases.case import (
    Case,
    CaseContent,
    CaseMetadata,
    HistoryEntry,
    RelatedCase,
    Vote,
)
from memory.clock import rfc3339
from memory.items.scope import Scope
from memory.stores.database import decoding_rows
from memory.stores.sqlite.row_values import Row, columns_of, read_value


def write_case(case: Case) -> str:
    """Return a case as JSON; its fields are always in the same order."""
    value = asdict(case) | {"scope": {"owner_id": case.scope.owner_id, **case.scope.labels}}
    return json.dumps(value, ensure_ascii=False, default=rfc3339)


@decoding_rows()
def read_case(value: str) -> Case:
    """Return the case that `write_case` wrote."""
    fields = json.loads(value)
    content = _content_of(fields["content"])
    return read_value(Case, fields, scope=Scope(**fields["scope"]), content=content)


def _content_of(fields: Mapping[str, Any]) -> CaseContent:
    return read_value(CaseContent, fields, metadata=read_value(CaseMetadata, fields["metadata"]))


@decoding_rows()
def related_of(row: Row) -> RelatedCase:
    """Return a relation as one end sees it."""
    return read_value(RelatedCase, row, case_id=row["other"])


@decoding_rows()
def history_of(row: Row) -> HistoryEntry:
    """Return the entry in a row of `case_history`."""
    return read_value(HistoryEntry, row, details=json.loads(row["details"]))


def row_of_history(case_id: str, entry: HistoryEntry) -> dict[str, Any]:
    """Return the columns of `case_history`."""
    details = json.dumps(dict(entry.details), ensure_ascii=False)
    return columns_of(entry, case_id=case_id, details=details)


@decoding_rows()
def vote_of(row: Row) -> Vote:
    """Return the vote in a row of `case_votes`; an earlier release kept warnings in a column of
    their own.
    """
    return read_value(Vote, row, signal=row["signal"] or row["warning"])
