"""A case: one incident's symptom, diagnosis, root cause and resolution, and how far it is to be trusted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, get_args

from memory.scope import Scope

Lifecycle = Literal["draft", "accepted", "rejected", "stale"]
"""Written and not confirmed; confirmed by other conversations; found wrong; true no more."""
FailureLayer = Literal["jvm", "k8s", "network", "db", "application", "os", "middleware", "unknown"]
Signal = Literal["stale", "success", "rollback", "conflict", "high_risk"]
ReviewReason = Literal["low_confidence", "rollback", "conflict", "high_risk"]
By = Literal["agent", "person"]

FAILURE_LAYERS: Final[tuple[FailureLayer, ...]] = get_args(FailureLayer)
SIGNALS: Final[tuple[Signal, ...]] = get_args(Signal)

LEAST_CONFIDENCE: Final = 0.5
"""A case below it is not found by search; it can still be rendered and judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseMetadata:
    """What surrounds an incident; None and empty: not known."""

    failure_layer: FailureLayer | None = None
    runtime: str | None = None
    related_services: tuple[str, ...] = ()
    middleware: str | None = None
    application_name: str | None = None
    region: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseContent:
    """What a case says; Markdown, secrets masked already."""

    symptom_summary: str
    diagnosis: str
    resolution: str
    root_cause: str = ""
    """Empty: not found out."""
    metadata: CaseMetadata = field(default_factory=CaseMetadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case as it stands now."""

    case_id: str
    scope: Scope
    """Whose it is, and for which app and environment; a label of None: for every one. Never changes."""
    content: CaseContent
    stated_confidence: float
    """What its author said, 0 to 1; votes move `confidence` from there."""
    confidence: float
    lifecycle: Lifecycle = "draft"
    source_conversation_id: str | None = None
    """Where it was first written; None: outside of any conversation."""
    authors: tuple[str, ...] = ()
    """The conversations that wrote what it says now: their votes alone never make it accepted."""
    revision: int = 1
    """Grows with each change of any kind; names one state of the case."""
    content_revision: int = 1
    """The revision that changed the symptom, diagnosis, root cause or resolution last."""
    judged_from: int = 1
    """Votes on what it said before this revision count no more: a person has rewritten it since."""
    reports: int = 0
    """Near-duplicates that were merged into it."""
    review_reasons: tuple[ReviewReason, ...] = ()
    """Why a person should look at it; empty: no need."""
    last_signal: Signal | None = None
    last_feedback_at: datetime | None = None
    created_at: datetime
    updated_at: datetime

    @property
    def is_findable(self) -> bool:
        """Whether search may show it; others come back only when they are asked for by id."""
        return self.lifecycle in {"draft", "accepted"} and self.confidence >= LEAST_CONFIDENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseCaller:
    """On whose behalf a tool is called; known to the server, never read from an argument."""

    scope: Scope
    """The owner, and the app and environment of the conversation; a label of None: any."""
    conversation_id: str | None = None
    root_id: str | None = None
    """The conversation that it was branched off from, the first of them; None: it began by itself."""
    by: By = "agent"
    active_tools: tuple[str, ...] = ()
    """The tools in use in the conversation, oldest first: what cases say of their schemas is held back."""
    only_environment: bool = False
    """Whether cases of another environment of the app are left out, instead of ranked below."""

    @property
    def voter(self) -> str:
        """Who votes: one conversation with all its branches has one vote on a case, a person outside of any too.

        A branch knows what its root knew, and so confirms nothing that was written there.
        """
        return self.root_id or self.conversation_id or f"person:{self.scope.owner_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """What one conversation thinks of a case; its next vote on the same case takes this one's place."""

    case_id: str
    voter: str
    helpful: bool | None = None
    signal: Signal | None = None
    app_code: str | None = None
    """Where it was used, which need not be where it was written."""
    environment: str | None = None
    at: datetime
    content_revision: int = 1
    """What the case said when it was shown to the voter, as far as that is known; else when this was cast."""
    warning: Signal | None = None
    """What it warns of beside what it judges; of a vote that is stored, for `signal` judges there."""
    warned_on: int = 0
    """What the case said when the voter warned."""


Relation = Literal["same_root_cause", "similar_diagnosis", "surface_similar"]
RELATIONS: Final[tuple[Relation, ...]] = get_args(Relation)
"""The nearest first: one cause, one way to it, mere likeness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedCase:
    """How another case is related to one; both ends know."""

    case_id: str
    relation: Relation
    score: float
    """0 to 1."""

    @property
    def distance(self) -> tuple[int, float, str]:
        """What the nearest have least of: how they are related decides before how much, then the lesser id."""
        return (RELATIONS.index(self.relation), -self.score, self.case_id)


Event = Literal["created", "updated", "merged", "feedback", "lifecycle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One change of a case: what, when, and by whom."""

    at: datetime
    event: Event
    by: By
    user_id: str
    conversation_id: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)
    """JSON: the fields that changed, the vote, the lifecycle before and after, the beginnings of replaced texts; no secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A near-duplicate that was merged into a case, kept as it was told."""

    content: CaseContent
    conversation_id: str | None
    at: datetime
