"""What a search shows of a case: enough to choose, some 500 characters, never the whole."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from memory.cases.case import Case
from memory.cases.fingerprint import fingerprint_of
from memory.cases.results import CaseSummary, FeedbackTally
from memory.text_lines import clipped, flat

PREVIEW_CHARS: Final = 300
_TEXT_CHARS: Final = 540
"""Of symptom, diagnosis, root cause and resolution together; what one does not need the others get."""
_CUT: Final = "..."


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A case in its place of an answer, with what is counted of it."""

    case: Case
    score: float
    why: str
    feedback: FeedbackTally
    similar_count: int


def summarize(shown: Shown) -> CaseSummary:
    """Give the summary; texts are one line each, cut ones end in `...`."""
    case, feedback = shown.case, shown.feedback
    content = case.content
    diagnosis = flat(content.diagnosis)
    preview = clipped(diagnosis, PREVIEW_CHARS)
    texts = _sharing(
        {
            "symptom": flat(content.symptom_summary),
            "root_cause": flat(content.root_cause),
            "resolution": flat(content.resolution),
        },
        _TEXT_CHARS - min(len(preview), PREVIEW_CHARS),
    )
    return CaseSummary(
        case_id=case.case_id,
        symptom_summary=texts["symptom"],
        diagnosis_preview=preview,
        diagnosis_len=len(content.diagnosis),
        root_cause=texts["root_cause"],
        resolution=texts["resolution"],
        confidence=case.confidence,
        lifecycle=case.lifecycle,
        similar_count=shown.similar_count,
        source_conv_id=case.source_conversation_id,
        fingerprint=fingerprint_of(content, case.scope).hex(),
        created_at=case.created_at,
        updated_at=case.updated_at,
        feedback_h=feedback.helpful,
        feedback_u=feedback.unhelpful,
        feedback_cv_count=feedback.conversations,
        app_code=case.scope.app_code,
        environment=case.scope.environment,
        score=round(shown.score, 4),
        why=shown.why,
    )


def _sharing(texts: Mapping[str, str], room: int) -> dict[str, str]:
    """Cut texts so that together they fit into a room: short ones stay whole, long ones get alike."""
    shared: dict[str, str] = {}
    for place, (name, text) in enumerate(sorted(texts.items(), key=lambda text: len(text[1]))):
        share = room // (len(texts) - place)
        shared[name] = text if len(text) <= share else f"{text[: share - len(_CUT)].rstrip()}{_CUT}"
        room -= len(shared[name])
    return shared
