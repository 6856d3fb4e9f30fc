"""What people allowed for whole conversations. The rules end with the server."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.errors import NotFound
from gateway.ids import ApprovalId, ConversationId
from policies.permits import Effect, Permit


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """A rule under which calls of a conversation pass unasked."""

    id: ApprovalId
    """Of the approval that it came from."""
    permit: Permit
    shown: dict[str, Any]
    at: datetime

    def fields(self) -> dict[str, Any]:
        """Return what clients see of it."""
        return {"approval_id": self.id, **self.shown}


class StandingRules:
    """The rules of all conversations."""

    def __init__(self) -> None:
        self._rules: dict[ConversationId, list[Allowed]] = {}

    def of(self, conversation_id: ConversationId) -> Sequence[Allowed]:
        """List the rules under which calls of a conversation pass unasked, oldest first."""
        return self._rules.get(conversation_id, ())

    def covering(self, conversation_id: ConversationId, effect: Effect) -> Allowed | None:
        """Return the oldest rule that lets a call pass; None if there is none."""
        rules = self.of(conversation_id)
        return next((rule for rule in rules if rule.permit.covers(effect)), None)

    def add(self, conversation_id: ConversationId, rule: Allowed) -> None:
        """Add a rule to a conversation."""
        self._rules.setdefault(conversation_id, []).append(rule)

    def withdraw(self, conversation_id: ConversationId, approval_id: str) -> None:
        """Ask again about what a rule covers. Raise `NotFound` if the conversation has no such
        rule.
        """
        left = [rule for rule in self.of(conversation_id) if rule.id != approval_id]
        if len(left) == len(self.of(conversation_id)):
            raise NotFound("There is no such rule.")
        self._rules[conversation_id] = left

    def forget(self, conversation_id: ConversationId) -> None:
        """Forget what was allowed for a conversation."""
        self._rules.pop(conversation_id, None)
