"""Approvals as clients see them: while a run waits for the answer, and after it has ended."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from gateway.conversations.model import Approval
from gateway.ids import ApprovalId
from gateway.turns.asked_input import cut_input
from gateway.turns.sentences import Language, say
from memory.clock import rfc3339

AskKind = Literal["change", "rule", "person", "unlisted"]
"""The call changes something; the operator's rule wants a person to be asked; the agent asks the
person; the policy denies the call unless a person allows it."""
Touches = Literal["workspace", "machine"]
"""What a program may touch that the policy does not know: the kernel's wall confines it to the
workspace, or nothing confines it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskReason:
    """Why a person is asked about a call."""

    kind: AskKind = "change"
    why: str | None = None
    """Why it is not allowed by itself, as the person reads it."""
    is_program: bool = False
    """The policy does not know what the program touches."""


CHANGE: Final = AskReason()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An approval whose run waits for the answer."""

    approval: Approval
    permits: tuple[dict[str, Any], ...]
    """The rules that a yes for the whole conversation may stand for, the narrowest first."""
    expires_at: datetime
    why: AskReason = CHANGE
    touches: Touches | None = None

    @property
    def id(self) -> ApprovalId:
        """The approval's id."""
        return self.approval.id

    def fields(self) -> dict[str, Any]:
        """Return what clients see of it."""
        return {**_fields(self.approval, "pending", None), **self.shown()}

    def shown(self) -> dict[str, Any]:
        """Return those of the fields that only an approval has whose run waits."""
        return {
            "permits": list(self.permits),
            "expires_at": rfc3339(self.expires_at),
            "unlisted": self.why.kind == "unlisted",
            "why": self.why.why,
            "touches": self.touches,
        }


def pending_fields(approval: Approval) -> dict[str, Any]:
    """Return what clients see of an approval with a `question`, whose run waits elsewhere."""
    return {**_fields(approval, "pending", None), **(approval.question or {})}


def waiting_fields(approval: Approval, *, is_lost: bool, is_off: bool) -> dict[str, Any]:
    """Return what clients see of an approval whose run has ended."""
    reason = "approval_lost" if is_lost else "approval_off" if is_off else "approval_waiting"
    language: Language = "zh" if approval.language == "zh" else "en"
    state = "lost" if is_lost or is_off else "waiting"
    return {
        **_fields(approval, state, say(language, reason)),
        "permits": [],
        "expires_at": None,
        "unlisted": False,
        "why": None,
        "touches": None,
    }


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
