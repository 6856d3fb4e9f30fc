"""The answer to an approval: what a person says, and what it means for the call that waits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from gateway.conversations.model import Decision
from gateway.ids import ApprovalId
from memory.clock import rfc3339
from policies.permits import Reach

Remember = Literal["once", "conversation"]

_ALLOWED_BY: Final[Mapping[str, str]] = {"remembered": "rule", "model": "model"}
"""Who let a call pass, as clients see it, where it was not a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How an approval ended for the call that waited."""

    decision: Decision
    by: Literal["user", "remembered", "model", "turn_ended", "waiting", "not_stored"]
    """`remembered`: by a rule of an earlier yes. `model`: by the side model, which can only allow.
    `waiting`: the run ends, the answer may come."""
    message: str = ""
    permit: dict[str, Any] | None = None
    """The rule that it left behind or passed by, as clients see it."""
    answers: Mapping[str, str] | None = None
    """What the person answered, by the agent's questions."""
    approval_id: ApprovalId | None = None
    """The approval to which a person said yes."""
    at: datetime | None = None
    """When they did."""

    @property
    def allowed_by(self) -> dict[str, Any] | None:
        """The yes that lets the call pass, as clients see it; None if nothing does."""
        if self.decision != "allow":
            return None
        is_rule = self.by == "remembered"
        return {
            "by": _ALLOWED_BY.get(self.by, "person"),
            "approval_id": self.approval_id,
            "rule": self.permit if is_rule else None,
            "at": None if self.at is None else rfc3339(self.at),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a person says to an approval."""

    decision: Decision
    message: str = ""
    """Their word to the agent."""
    remember: Remember = "once"
    reach: Reach = "exact"
    """How much a yes for the conversation covers."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """To the agent's questions, by their texts as shown."""
