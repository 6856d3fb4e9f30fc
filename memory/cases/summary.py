"""What a search shows of a case: enough to choose, about 500 characters."""

from typing import Final

from memory.cases.fingerprint import fingerprint_of
from memory.cases.ranking import RankedCase
from memory.cases.results import CaseSummary, FeedbackTally
from memory.text_lines import clipped, flat

PREVIEW_CHARS: Final = 300
_TEXT_CHARS: Final = 540
"""Of symptom, diagnosis, root cause and resolution together."""


def summarize(ranked: RankedCase, *, feedback: FeedbackTally, similar_count: int) -> CaseSummary:
    """Return the summary of a found case; texts are one line each, and end in `...` where they are cut."""
    case, content = ranked.case, ranked.case.content
    preview = clipped(flat(content.diagnosis), PREVIEW_CHARS)
    room = _TEXT_CHARS - min(len(preview), PREVIEW_CHARS)
    short: dict[str, str] = {}
    texts = (content.symptom_summary, content.root_cause, content.resolution)
    for left, text in zip((3, 2, 1), sorted(map(flat, texts), key=len), strict=True):
        short[text] = clipped(text, max(0, room // left - 3))
        room -= len(short[text])
    return CaseSummary(
        case_id=case.case_id,
        symptom_summary=short[flat(content.symptom_summary)],
        diagnosis_preview=preview,
        diagnosis_len=len(content.diagnosis),
        root_cause=short[flat(content.root_cause)],
        resolution=short[flat(content.resolution)],
        confidence=case.confidence,
        lifecycle=case.lifecycle,
        similar_count=similar_count,
        source_conv_id=case.source_conversation_id,
        fingerprint=fingerprint_of(content, case.scope).hex(),
        created_at=case.created_at,
        updated_at=case.updated_at,
        feedback_h=feedback.helpful,
        feedback_u=feedback.unhelpful,
        feedback_cv_count=feedback.conversations,
        app_code=case.scope.app_code,
        environment=case.scope.environment,
        score=round(ranked.score, 4),
        why=ranked.why,
    )
