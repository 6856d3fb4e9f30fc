"""Approvals as clients see them: while a run waits for the answer, and after it has ended."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.conversations.model import Approval
from gateway.ids import ApprovalId
from gateway.turns.asked_input import cut_input
from gateway.turns.sentences import Language, say
from memory.clock import rfc3339


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An approval whose run waits for the answer."""

    approval: Approval
    permits: tuple[dict[str, Any], ...]
    """The rules that a yes for the whole conversation may stand for, the narrowest first."""
    expires_at: datetime

    @property
    def id(self) -> ApprovalId:
        """The approval's id."""
        return self.approval.id

    def fields(self) -> dict[str, Any]:
        """Return what clients see of it."""
        return {
            **_fields(self.approval, "pending", None),
            "permits": list(self.permits),
            "expires_at": rfc3339(self.expires_at),
        }


def waiting_fields(approval: Approval, *, is_lost: bool, is_off: bool) -> dict[str, Any]:
    """Return what clients see of an approval whose run has ended."""
    reason = "approval_lost" if is_lost else "approval_off" if is_off else "approval_waiting"
    language: Language = "zh" if approval.language == "zh" else "en"
    state = "lost" if is_lost or is_off else "waiting"
    return {**_fields(approval, state, say(language, reason)), "permits": [], "expires_at": None}


def _fields(approval: Approval, state: str, reason: str | None) -> dict[str, Any]:
    cut, chars = cut_input(approval.input)
    return {
        "approval_id": approval.id,
        "conversation_id": approval.conversation_id,
        "turn_id": approval.turn_id,
        "index": approval.call_index,
        "tool_use_id": approval.tool_use_id,
        "name": approval.name,
        "summary": approval.summary,
        "input": cut,
        "input_chars": chars,
        "truncated": cut is not approval.input,
        "hidden": [dict(place) for place in approval.hidden],
        "state": state,
        "reason": reason,
    }
