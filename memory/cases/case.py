"""A case: an incident's symptom, diagnosis, root cause and resolution, and how far
it is trusted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, get_args

from memory.items.scope import Scope

Lifecycle = Literal["draft", "accepted", "rejected", "stale"]
"""Not confirmed yet; confirmed by other conversations; found wrong; no longer true."""
FailureLayer = Literal["jvm", "k8s", "network", "db", "application", "os", "middleware", "unknown"]
Signal = Literal["stale", "success", "rollback", "conflict", "high_risk"]
ReviewReason = Literal["low_confidence", "rollback", "conflict", "high_risk"]
By = Literal["agent", "person"]

FAILURE_LAYERS: Final[tuple[FailureLayer, ...]] = get_args(FailureLayer)
SIGNALS: Final[tuple[Signal, ...]] = get_args(Signal)

LEAST_CONFIDENCE: Final = 0.5
"""Search does not find a case below it; it can still be rendered and judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseMetadata:
    """The surroundings of an incident; None and empty: not known."""

    failure_layer: FailureLayer | None = None
    runtime: str | None = None
    related_services: tuple[str, ...] = ()
    middleware: str | None = None
    application_name: str | None = None
    region: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseContent:
    """What a case says: Markdown with secrets masked."""

    symptom_summary: str
    diagnosis: str
    resolution: str
    root_cause: str = ""
    """Empty: not known."""
    metadata: CaseMetadata = field(default_factory=CaseMetadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The present state of a case."""

    case_id: str
    scope: Scope
    """Owner, app and environment; a label of None: any. Never changes."""
    content: CaseContent
    stated_confidence: float
    """As the author stated it, 0 to 1; votes move `confidence` from there."""
    confidence: float
    lifecycle: Lifecycle = "draft"
    source_conversation_id: str | None = None
    """Where it was first written; None: in no conversation."""
    authors: tuple[str, ...] = ()
    """The conversations that wrote it; their votes alone never make it accepted."""
    revision: int = 1
    """Grows with each change of any kind."""
    content_revision: int = 1
    """The revision of the last change of the symptom, diagnosis, root cause or resolution."""
    review_reasons: tuple[ReviewReason, ...] = ()
    """Why a person should look at it."""
    last_signal: Signal | None = None
    last_feedback_at: datetime | None = None
    created_at: datetime
    updated_at: datetime

    @property
    def is_findable(self) -> bool:
        """True if search may show it; other cases are read by id only."""
        return self.lifecycle in {"draft", "accepted"} and self.confidence >= LEAST_CONFIDENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseCaller:
    """On whose behalf a tool is called; set by the server, never by an argument."""

    scope: Scope
    """The owner, and the app and environment of the conversation; None: any."""
    conversation_id: str | None = None
    root_id: str | None = None
    """The first conversation that it was forked from; None: it is not a fork."""
    by: By = "agent"
    active_tools: tuple[str, ...] = ()
    """The tools in use, oldest first; cases with their outdated schemas are held back."""
    only_environment: bool = False
    """True to leave out cases of other environments instead of ranking them lower."""

    @property
    def voter(self) -> str:
        """The conversation with all its forks, or a person: each has one vote on a case.

        A fork knows what its root knew, so it confirms nothing that was written there.
        """
        return self.root_id or self.conversation_id or f"person:{self.scope.owner_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One voter's opinion of a case; a later vote replaces it."""

    case_id: str
    voter: str
    helpful: bool | None = None
    signal: Signal | None = None
    app_code: str | None = None
    """Where the case was used, not where it was written."""
    environment: str | None = None
    at: datetime
    content_revision: int = 1
    """The content that it judges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCase:
    """A case as it was exported; the votes on it were not."""

    case_id: str
    scope: Scope
    sent: Mapping[str, object]
    """What it says, in the form in which a case is sent; not checked."""
    lifecycle: Lifecycle
    """Never accepted: confirmation is not taken from a file."""
    told_at: datetime


Relation = Literal["same_root_cause", "similar_diagnosis", "surface_similar"]
RELATIONS: Final[tuple[Relation, ...]] = get_args(Relation)
"""Nearest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedCase:
    """A relation to another case; both cases have it."""

    case_id: str
    relation: Relation
    score: float
    """0 to 1."""
    struct_match: bool = True
    """False if the failure layer, the runtime or the services contradict; a missing value does
    not."""

    @property
    def distance(self) -> tuple[int, float, str]:
        """Sort key, nearest first: relation, score, id."""
        return (RELATIONS.index(self.relation), -self.score, self.case_id)


Event = Literal["created", "updated", "merged", "feedback", "lifecycle"]
"""`merged` is an event of an earlier release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One change of a case."""

    at: datetime
    event: Event
    by: By
    user_id: str
    conversation_id: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)
    """JSON, without secrets: changed fields, vote, lifecycle step, beginnings of replaced texts."""
