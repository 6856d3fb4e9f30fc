"""Cases and votes to judge."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from memory.cases.case import Case, CaseContent, CaseMetadata, Vote
from memory.cases.lifecycle import after_revision, after_vote
from memory.cases.votes import with_vote
from memory.items.scope import Scope

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWN = "cnv_own"
LATER = AT + timedelta(hours=1)


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
    """Return a time after the cases were made."""
    return AT + timedelta(days=days)


class Life:
    """A case with its votes, as a store would keep them."""

    def __init__(self, **fields: Any) -> None:
        self.case = make_case(**fields)
        self.votes: list[Vote] = []

    def vote(self, voter: str, *, by: Any = "agent", on_first: bool = False, **fields: Any) -> Case:
        revision = 1 if on_first else self.case.content_revision
        vote = make_vote(voter, at=LATER, content_revision=revision, **fields)
        self.votes = with_vote(self.votes, vote)
        self.case = after_vote(self.case, self.votes, vote, LATER, by=by)
        return self.case

    def rewrite(
        self,
        writer: str,
        *,
        by: Any = "agent",
        stated: Any = None,
        content: Any = None,
        **fields: Any,
    ) -> Case:
        self.case = after_revision(
            self.case,
            self.votes,
            content=content or make_content(**fields),
            stated=self.case.stated_confidence if stated is None else stated,
            writer=writer,
            by=by,
            at=LATER,
        )
        return self.case
