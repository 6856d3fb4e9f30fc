"""Cases and votes to judge."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from memory.cases.case import Case, CaseContent, CaseMetadata, Vote
from memory.scope import Scope

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWN = "cnv_own"


def make_content(**fields: Any) -> CaseContent:
    """Make a content; what is not given is about a full disk."""
    told: dict[str, Any] = {
        "symptom_summary": "Pods are evicted from the node",
        "diagnosis": "df shows /var/lib/docker full of container logs.",
        "root_cause": "Container logs were not rotated",
        "resolution": "Configured rotation.",
        "metadata": CaseMetadata(),
    }
    return CaseContent(**(told | fields))


def make_case(**fields: Any) -> Case:
    """Make a draft that one conversation wrote."""
    case = Case(
        case_id="cas_1",
        scope=Scope(owner_id="ann", app_code="shop", environment="production"),
        content=make_content(),
        stated_confidence=0.7,
        confidence=fields.get("stated_confidence", 0.7),
        authors=(OWN,),
        created_at=AT,
        updated_at=AT,
    )
    return replace(case, **fields)


def make_vote(voter: str = "cnv_other", **fields: Any) -> Vote:
    """Make a vote on it; its minute counts up with the voter's number."""
    return replace(Vote(case_id="cas_1", voter=voter, at=AT), **fields)


def days_later(days: float) -> datetime:
    """Give a moment after the cases were made."""
    return AT + timedelta(days=days)
