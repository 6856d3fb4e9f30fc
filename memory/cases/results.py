"""What the four tools answer: typed, with a code of its own for everything that can go wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from memory.cases.case import Case, HistoryEntry, Lifecycle, RelatedCase, Report
from memory.recall.query import Degradation

Code = Literal[
    "OK",
    "TOOL_NOT_FOUND",
    "TOOL_TIMEOUT",
    "INVALID_SCOPE",
    "INVALID_TOP_K",
    "INVALID_QUERY",
    "INVALID_CASE",
    "INVALID_FEEDBACK",
    "MISSING_CASE",
    "MISSING_CASE_ID",
    "TOO_MANY_CASES",
    "CASE_NOT_FOUND",
    "STORE_UNAVAILABLE",
]

MAX_TOP_K: Final = 20
DEFAULT_TOP_K: Final = 5
MAX_RENDERED: Final = 5
MAX_TOLD_RELATED: Final = 10
"""Related cases that are told with one."""
MAX_UNREVIEWED: Final = 10


class CaseRefused(Exception):
    """A call cannot be done; the text is one sentence that says what to do instead."""

    def __init__(self, code: Code, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.code: Code = code
        self.field = field
        """What of the case or scope that was sent it is about, as in `metadata.tags`; empty: none, or all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackTally:
    """Votes on a case: each conversation counts once."""

    helpful: int = 0
    unhelpful: int = 0
    conversations: int = 0
    """Distinct conversations, other than those that wrote it, that found it helpful."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSummary:
    """What a search shows of a case, some 500 characters; render it for the rest."""

    case_id: str
    symptom_summary: str
    diagnosis_preview: str
    diagnosis_len: int
    root_cause: str
    resolution: str
    confidence: float
    lifecycle: Lifecycle
    similar_count: int
    source_conv_id: str | None
    fingerprint: str
    created_at: datetime
    updated_at: datetime
    feedback_h: int
    feedback_u: int
    feedback_cv_count: int
    app_code: str | None
    environment: str | None
    score: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """What was found, best first."""

    cases: Sequence[CaseSummary]
    degraded: Sequence[Degradation] = ()
    held_back: Sequence[str] = ()
    """Ids of cases that tell outdated usage of a tool that is in use."""
    code: Code = "OK"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertAnswer:
    """What became of a case that was recorded."""

    status: Literal["created", "updated", "merged", "unchanged"]
    case: Case
    """As it stands now; of a merged one the case that it went into."""
    similar_cases: Sequence[RelatedCase] = ()
    stripped: Sequence[str] = ()
    """Fields that were sent and may not be written this way; they changed nothing."""
    redacted: int = 0
    """Secrets that were masked."""
    notes: Sequence[str] = ()
    """What the caller should know, a sentence each."""
    unreviewed_cases: Sequence[str] = ()
    code: Code = "OK"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackAnswer:
    """What a vote changed."""

    case: Case
    feedback: FeedbackTally
    notes: Sequence[str] = ()
    unreviewed_cases: Sequence[str] = ()
    code: Code = "OK"


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeCase:
    """A case with everything that is known of it."""

    case: Case
    feedback: FeedbackTally
    similar_cases: Sequence[RelatedCase]
    history: Sequence[HistoryEntry]
    """Oldest first; of a very long one its beginning, its steps and the newest."""
    history_left_out: int
    """So many changes more there are."""
    reports: Sequence[Report]
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderAnswer:
    """Cases to read, in the order in which they were asked for."""

    cases: Sequence[WholeCase]
    missing: Sequence[str] = ()
    """Ids that are nobody's, or another's."""
    code: Code = "OK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A call that changed nothing, and why."""

    code: Code
    message: str
    details: dict[str, object] = field(default_factory=dict)
    about: str = ""
    """The field of the case or scope that was sent which is to blame; empty: none, or all of it."""
