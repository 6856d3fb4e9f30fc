"""Cases as JSON, as they stand in their rows."""

import json
import sqlite3
from collections.abc import Mapping
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
from memory.stores.sqlite.database import understanding_rows

Row = Mapping[str, Any] | sqlite3.Row


def write_case(case: Case) -> str:
    """Write a case as JSON; its fields always in the same order."""
    value = {
        "case_id": case.case_id,
        "scope": {"owner_id": case.scope.owner_id, **case.scope.labels},
        "content": _content_fields(case.content),
        "stated_confidence": case.stated_confidence,
        "confidence": case.confidence,
        "lifecycle": case.lifecycle,
        "source_conversation_id": case.source_conversation_id,
        "authors": case.authors,
        "revision": case.revision,
        "content_revision": case.content_revision,
        "judged_from": case.judged_from,
        "reports": case.reports,
        "review_reasons": case.review_reasons,
        "last_signal": case.last_signal,
        "last_feedback_at": rfc3339(case.last_feedback_at) if case.last_feedback_at else None,
        "created_at": rfc3339(case.created_at),
        "updated_at": rfc3339(case.updated_at),
    }
    return json.dumps(value, ensure_ascii=False)


@understanding_rows()
def read_case(value: str) -> Case:
    """Read what `write_case` wrote."""
    fields = json.loads(value)
    fields.pop("own_metadata", None)  # written by earlier versions
    last = fields["last_feedback_at"]
    return Case(
        **{
            **fields,
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
    """Write what a case says as JSON."""
    return json.dumps(_content_fields(content), ensure_ascii=False)


@understanding_rows()
def vote_of(row: Row) -> Vote:
    """Read a row of `case_votes`."""
    return Vote(
        case_id=row["case_id"],
        voter=row["voter"],
        helpful=None if row["helpful"] is None else bool(row["helpful"]),
        signal=row["signal"],
        app_code=row["app_code"],
        environment=row["environment"],
        at=from_rfc3339(row["at"]),
        content_revision=row["content_revision"],
        warning=row["warning"],
        warned_on=row["warned_on"],
    )


@understanding_rows()
def related_of(row: Row) -> RelatedCase:
    """Read a relation as one end sees it."""
    return RelatedCase(case_id=row["other"], relation=row["relation"], score=row["score"])


@understanding_rows()
def history_of(row: Row) -> HistoryEntry:
    """Read a row of `case_history`."""
    return HistoryEntry(
        at=from_rfc3339(row["at"]),
        event=row["event"],
        by=row["by"],
        user_id=row["user_id"],
        conversation_id=row["conversation_id"],
        details=json.loads(row["details"]),
    )


@understanding_rows()
def report_of(row: Row) -> Report:
    """Read a row of `case_reports`."""
    return Report(
        content=_content_of(json.loads(row["content"])),
        conversation_id=row["conversation_id"],
        at=from_rfc3339(row["at"]),
    )


def _content_fields(content: CaseContent) -> Mapping[str, object]:
    return {
        "symptom_summary": content.symptom_summary,
        "diagnosis": content.diagnosis,
        "resolution": content.resolution,
        "root_cause": content.root_cause,
        "metadata": _metadata_fields(content.metadata),
    }


def _metadata_fields(known: CaseMetadata) -> Mapping[str, object]:
    return {
        "failure_layer": known.failure_layer,
        "runtime": known.runtime,
        "related_services": known.related_services,
        "middleware": known.middleware,
        "application_name": known.application_name,
        "region": known.region,
        "tags": known.tags,
    }


def _content_of(fields: Mapping[str, Any]) -> CaseContent:
    return CaseContent(**{**fields, "metadata": _metadata_of(fields["metadata"])})


def _metadata_of(known: Mapping[str, Any]) -> CaseMetadata:
    return CaseMetadata(
        **{
            **known,
            "related_services": tuple(known["related_services"]),
            "tags": tuple(known["tags"]),
        }
    )
