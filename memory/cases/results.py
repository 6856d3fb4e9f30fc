"""The answers of the four tools, and a code for everything that can go wrong."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

from memory.cases.case import Case, HistoryEntry, Lifecycle, RelatedCase
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

_SENTENCES: Final = tomllib.loads(
    Path(__file__).with_name("sentences.toml").read_text(encoding="utf-8")
)


def sentence(table: Literal["notes", "refusals", "markdown"], name: str, *shown: object) -> str:
    """Return a sentence of `sentences.toml` with the values of `shown` in it."""
    text: str = _SENTENCES[table][name]
    return text.format(*shown)


MAX_TOP_K: Final = 20
DEFAULT_TOP_K: Final = 5
MAX_RENDERED: Final = 5
MAX_TOLD_RELATED: Final = 10
"""Related cases that are shown with a case."""
MAX_UNREVIEWED: Final = 10


class CaseRefused(Exception):
    """The call is not possible; the text says in one sentence what to do instead.

    `field` is the invalid field, as in `metadata.tags`; empty: none, or the whole input.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        field: str = "",
        details: dict[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.code: Code = code
        self.field = field
        self.details = details or {}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackTally:
    """Votes on a case, one a conversation."""

    helpful: int = 0
    unhelpful: int = 0
    conversations: int = 0
    """Distinct conversations, other than those that wrote it, that found it helpful."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSummary:
    """What a search shows of a case; render it for the rest."""

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
    """The cases that were found, best first."""

    cases: Sequence[CaseSummary]
    degraded: Sequence[Degradation] = ()
    held_back: Sequence[str] = ()
    """Ids of cases with outdated usage of a tool that is in use."""
    notes: Sequence[str] = ()
    """Sentences for the caller."""
    code: Code = "OK"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertAnswer:
    """The result of recording or updating a case."""

    status: Literal["created", "updated", "unchanged"]
    case: Case
    """As it is now; for `unchanged` perhaps another case that says the same."""
    similar_cases: Sequence[RelatedCase] = ()
    stripped: Sequence[str] = ()
    """Fields that were sent and ignored, because the caller may not write them."""
    redacted: int = 0
    """Number of masked secrets."""
    notes: Sequence[str] = ()
    """Sentences for the caller."""
    unreviewed_cases: Sequence[str] = ()
    code: Code = "OK"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackAnswer:
    """The result of a vote."""

    case: Case
    feedback: FeedbackTally
    unreviewed_cases: Sequence[str] = ()
    code: Code = "OK"


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeCase:
    """A case with all that is stored about it."""

    case: Case
    feedback: FeedbackTally
    similar_cases: Sequence[RelatedCase]
    history: Sequence[HistoryEntry]
    """Oldest first; a very long one is shortened in the middle."""
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderAnswer:
    """Whole cases, in the order of the request."""

    cases: Sequence[WholeCase]
    missing: Sequence[str] = ()
    """Ids of no case of the caller."""
    code: Code = "OK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a call changed nothing."""

    code: Code
    message: str
    details: dict[str, object] = field(default_factory=dict)
    about: str = ""
    """The invalid field; empty: none, or the whole input."""
