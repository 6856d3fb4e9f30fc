"""What agents and clients see of cases, as plain JSON values."""

from collections.abc import Sequence
from typing import Any

from memory.cases.case import Case, HistoryEntry, RelatedCase, Report
from memory.cases.results import (
    CaseSummary,
    FeedbackAnswer,
    FeedbackTally,
    Refusal,
    SearchAnswer,
    UpsertAnswer,
    WholeCase,
)
from memory.clock import rfc3339
from memory.text_lines import clipped


def search_fields(answer: SearchAnswer) -> dict[str, Any]:
    """Give the answer of a search."""
    return {
        "code": answer.code,
        "count": len(answer.cases),
        "cases": [_summary(one) for one in answer.cases],
        "degraded": list(answer.degraded),
        "held_back": list(answer.held_back),
    }


def upsert_fields(answer: UpsertAnswer) -> dict[str, Any]:
    """Say what became of a case that was recorded."""
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
    """Say what a vote changed."""
    return {
        "code": answer.code,
        **state_fields(answer.case),
        "feedback": _tally(answer.feedback),
        "notes": list(answer.notes),
        "unreviewed_cases": list(answer.unreviewed_cases),
    }


def whole_fields(whole: WholeCase, *, report_chars: int | None = None) -> dict[str, Any]:
    """Give a case with everything that is known of it; `report_chars`: so much of each text of a report."""
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
        "feedback": _tally(whole.feedback),
        "history": [_entry(one) for one in whole.history],
        "history_left_out": whole.history_left_out,
        "reports": [_report(one, case, report_chars) for one in whole.reports],
        "markdown": whole.markdown,
    }


def refusal_fields(refusal: Refusal) -> dict[str, Any]:
    """Say why nothing was done."""
    return {"code": refusal.code, "message": refusal.message, **refusal.details}


def state_fields(case: Case) -> dict[str, Any]:
    """Give what a case is, apart from what it says."""
    return {
        "case_id": case.case_id,
        "lifecycle": case.lifecycle,
        "confidence": case.confidence,
        "app_code": case.scope.app_code,
        "environment": case.scope.environment,
        "revision": case.revision,
        "report_count": case.reports,
        "requires_human_review": bool(case.review_reasons),
        "review_reasons": list(case.review_reasons),
        "last_feedback_signal": case.last_signal,
        "last_feedback_at": case.last_feedback_at and rfc3339(case.last_feedback_at),
        "created_at": rfc3339(case.created_at),
        "updated_at": rfc3339(case.updated_at),
    }


def metadata_fields(case: Case) -> dict[str, Any]:
    """Give what surrounds the incident; what is not known is left out."""
    known = case.content.metadata
    told: dict[str, Any] = {
        "failure_layer": known.failure_layer,
        "runtime": known.runtime,
        "related_services": list(known.related_services),
        "middleware": known.middleware,
        "application_name": known.application_name,
        "region": known.region,
        "tags": list(known.tags),
    }
    return {name: value for name, value in told.items() if value}


def _summary(one: CaseSummary) -> dict[str, Any]:
    return {
        "case_id": one.case_id,
        "symptom_summary": one.symptom_summary,
        "diagnosis_preview": one.diagnosis_preview,
        "diagnosis_len": one.diagnosis_len,
        "root_cause": one.root_cause,
        "resolution": one.resolution,
        "confidence": one.confidence,
        "lifecycle": one.lifecycle,
        "similar_count": one.similar_count,
        "source_conv_id": one.source_conv_id,
        "fingerprint": one.fingerprint,
        "created_at": rfc3339(one.created_at),
        "updated_at": rfc3339(one.updated_at),
        "feedback_h": one.feedback_h,
        "feedback_u": one.feedback_u,
        "feedback_cv_count": one.feedback_cv_count,
        "app_code": one.app_code,
        "environment": one.environment,
        "score": round(one.score, 6),
        "why": one.why,
    }


def _related(related: Sequence[RelatedCase]) -> list[dict[str, Any]]:
    return [
        {"case_id": one.case_id, "relation": one.relation, "score": round(one.score, 4)}
        for one in related
    ]


def _tally(tally: FeedbackTally) -> dict[str, Any]:
    return {
        "helpful": tally.helpful,
        "unhelpful": tally.unhelpful,
        "conversations": tally.conversations,
    }


def _entry(entry: HistoryEntry) -> dict[str, Any]:
    return {
        "at": rfc3339(entry.at),
        "event": entry.event,
        "by": entry.by,
        "user_id": entry.user_id,
        "conversation_id": entry.conversation_id,
        "details": dict(entry.details),
    }


def _report(report: Report, case: Case, chars: int | None) -> dict[str, Any]:
    """Give a merged report; its diagnosis and resolution where it says otherwise than the case."""
    told, known = report.content, case.content
    texts = {
        "symptom_summary": told.symptom_summary,
        "root_cause": told.root_cause,
        **({"diagnosis": told.diagnosis} if told.diagnosis != known.diagnosis else {}),
        **({"resolution": told.resolution} if told.resolution != known.resolution else {}),
    }
    if chars is not None:
        texts = {name: clipped(text, chars) for name, text in texts.items()}
    return {"at": rfc3339(report.at), "conversation_id": report.conversation_id, **texts}
