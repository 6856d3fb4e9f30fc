"""What agents and clients see of cases, as plain JSON values."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from memory.cases.case import Case, HistoryEntry, RelatedCase
from memory.cases.results import (
    CaseSummary,
    FeedbackAnswer,
    Refusal,
    SearchAnswer,
    UpsertAnswer,
    WholeCase,
)
from memory.clock import rfc3339
from memory.text.lines import clipped

MAX_ROW_CHARS: Final = 520
"""Of a found case as JSON, for an agent: five take about 2,500."""
_MAX_LABEL_CHARS: Final = 30
_SHOWN_TEXTS: Final = ("symptom_summary", "diagnosis_preview", "root_cause", "resolution")
_NOT_FOR_AGENTS: Final = frozenset(
    {"fingerprint", "source_conv_id", "app_code", "created_at", "updated_at", "score", "why"}
)


def search_fields(answer: SearchAnswer) -> dict[str, Any]:
    """Return the answer of a search."""
    return {
        "code": answer.code,
        "count": len(answer.cases),
        "cases": [_plain(case) | {"score": round(case.score, 6)} for case in answer.cases],
        "degraded": list(answer.degraded),
        "held_back": list(answer.held_back),
        "notes": list(answer.notes),
    }


def short_search_fields(answer: SearchAnswer) -> dict[str, Any]:
    """Return the answer of a search for an agent: rows of at most `MAX_ROW_CHARS`, without empty
    texts.
    """
    return search_fields(answer) | {"cases": [_short(case) for case in answer.cases]}


def _short(case: CaseSummary) -> dict[str, Any]:
    row = {name: value for name, value in _plain(case).items() if name not in _NOT_FOR_AGENTS}
    row["environment"] = case.environment and clipped(case.environment, _MAX_LABEL_CHARS)
    while len(json.dumps(row, ensure_ascii=False)) > MAX_ROW_CHARS:  # escaped characters take two
        longest = max(_SHOWN_TEXTS, key=lambda name: len(row[name]))
        row[longest] = clipped(row[longest], len(row[longest]) * 3 // 4 - 3)
    return {name: value for name, value in row.items() if value not in {None, ""}}


def upsert_fields(answer: UpsertAnswer) -> dict[str, Any]:
    """Return what recording a case did."""
    return {
        "code": answer.code,
        "status": answer.status,
        **state_fields(answer.case),
        "similar_cases": _related(answer.similar_cases),
        "stripped": list(answer.stripped),
        "redacted": answer.redacted,
        "notes": list(answer.notes),
        "unreviewed_cases": list(answer.unreviewed_cases),
    }


def feedback_fields(answer: FeedbackAnswer) -> dict[str, Any]:
    """Return what a vote changed."""
    return {
        "code": answer.code,
        **state_fields(answer.case),
        "feedback": asdict(answer.feedback),
        "unreviewed_cases": list(answer.unreviewed_cases),
    }


def whole_fields(whole: WholeCase) -> dict[str, Any]:
    """Return a case with all that is known of it."""
    case, content = whole.case, whole.case.content
    return {
        **state_fields(case),
        "symptom_summary": content.symptom_summary,
        "diagnosis": content.diagnosis,
        "root_cause": content.root_cause,
        "resolution": content.resolution,
        "metadata": metadata_fields(case),
        "source_conv_id": case.source_conversation_id,
        "similar_cases": _related(whole.similar_cases),
        "feedback": asdict(whole.feedback),
        "history": [_plain(entry) for entry in whole.history],
        "markdown": whole.markdown,
    }


def refusal_fields(refusal: Refusal) -> dict[str, Any]:
    """Return why nothing was done."""
    return {"code": refusal.code, "message": refusal.message, **refusal.details}


def state_fields(case: Case) -> dict[str, Any]:
    """Return a case without its content."""
    return {
        "case_id": case.case_id,
        "lifecycle": case.lifecycle,
        "confidence": case.confidence,
        "app_code": case.scope.app_code,
        "environment": case.scope.environment,
        "revision": case.revision,
        "requires_human_review": bool(case.review_reasons),
        "review_reasons": list(case.review_reasons),
        "last_feedback_signal": case.last_signal,
        "last_feedback_at": case.last_feedback_at and rfc3339(case.last_feedback_at),
        "created_at": rfc3339(case.created_at),
        "updated_at": rfc3339(case.updated_at),
    }


def metadata_fields(case: Case) -> dict[str, Any]:
    """Return what is known about the circumstances of the incident."""
    known = asdict(case.content.metadata)
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in known.items()
        if value
    }


def _plain(value: CaseSummary | HistoryEntry) -> dict[str, Any]:
    return {
        name: rfc3339(part) if isinstance(part, datetime) else part
        for name, part in asdict(value).items()
    }


def _related(related: Sequence[RelatedCase]) -> list[dict[str, Any]]:
    return [asdict(case) | {"score": round(case.score, 4)} for case in related]
