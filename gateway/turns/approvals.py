"""Approvals: a tool call that waits for a person's answer.

Questions live in memory only: after a restart no run is left that could wait for an answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Literal

import anyio

from gateway.errors import Conflict, NotFound
from gateway.ids import ApprovalId, ConversationId, TurnId, UserId, new_approval_id
from memory.clock import Now, rfc3339
from policies.tools import ToolCall

Decision = Literal["allow", "deny"]
Remember = Literal["once", "conversation"]

_KEPT_CLOSED = 1000
"""Closed questions that are remembered, so that a late answer gets 409; for older ones it gets 404."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a question ended."""

    decision: Decision
    by: Literal["user", "timeout", "remembered", "turn_ended"]
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A tool call that waits for a person."""

    id: ApprovalId
    user_id: UserId
    conversation_id: ConversationId
    turn_id: TurnId
    index: int
    """The call's number in its turn."""
    tool_use_id: str
    name: str
    summary: str
    expires_at: datetime

    def fields(self) -> dict[str, str | int]:
        """Return what clients see of it."""
        fields = asdict(self)
        del fields["user_id"]
        return {"approval_id": fields.pop("id"), **fields, "expires_at": rfc3339(self.expires_at)}


@dataclass(slots=True)
class _Open:
    question: Question
    memory_key: str
    answer: Answer | None = None
    answered: anyio.Event = field(default_factory=anyio.Event)


class ApprovalDesk:
    """All open questions, and what people allowed for whole conversations."""

    def __init__(self, *, timeout_s: float, now: Now) -> None:
        self._timeout_s = timeout_s
        self._now = now
        self._open: dict[str, _Open] = {}
        self._closed: dict[str, UserId] = {}
        self._remembered: dict[ConversationId, set[str]] = {}

    async def ask(
        self,
        call: ToolCall,
        *,
        user_id: UserId,
        conversation_id: ConversationId,
        turn_id: TurnId,
        summary: str,
        announce: Callable[[Question], None],
    ) -> tuple[Question | None, Answer]:
        """Ask a person and wait for the answer; without one in time the call is denied.

        No question is asked about what was allowed for the whole conversation. Cancellation withdraws
        the question.
        """
        key = _memory_key(call)
        if key in self._remembered.get(conversation_id, set()):
            return None, Answer(decision="allow", by="remembered")
        question = Question(
            id=new_approval_id(),
            user_id=user_id,
            conversation_id=conversation_id,
            turn_id=turn_id,
            index=call.index,
            tool_use_id=call.tool_use_id,
            name=call.name,
            summary=summary,
            expires_at=self._now() + timedelta(seconds=self._timeout_s),
        )
        waiting = self._open[question.id] = _Open(question, key)
        announce(question)
        try:
            with anyio.move_on_after(self._timeout_s):
                await waiting.answered.wait()
        finally:
            del self._open[question.id]
            self._closed[question.id] = user_id
            if len(self._closed) > _KEPT_CLOSED:
                del self._closed[next(iter(self._closed))]
        return question, waiting.answer or Answer(decision="deny", by="timeout")

    def pending(self, user_id: UserId, conversation_id: str | None = None) -> Sequence[Question]:
        """List a user's open questions, oldest first."""
        return [
            waiting.question
            for waiting in self._open.values()
            if waiting.question.user_id == user_id
            and conversation_id in {None, waiting.question.conversation_id}
        ]

    def answer(
        self,
        user_id: UserId,
        approval_id: str,
        decision: Decision,
        *,
        message: str = "",
        remember: Remember = "once",
    ) -> Question:
        """Take a person's answer.

        Raises:
            NotFound: there is no such question, or it is another user's.
            Conflict: it was answered already, or no call waits for it any more.
        """
        waiting = self._open.get(approval_id)
        owner = self._closed.get(approval_id) if waiting is None else waiting.question.user_id
        if owner != user_id:
            raise NotFound("There is no such approval.")
        if waiting is None or waiting.answer is not None:
            raise Conflict("This approval was answered already.", code="already_answered")
        waiting.answer = Answer(decision=decision, by="user", message=message)
        if remember == "conversation" and decision == "allow":
            self._remembered.setdefault(waiting.question.conversation_id, set()).add(
                waiting.memory_key
            )
        waiting.answered.set()
        return waiting.question

    def end_turn(self, turn_id: TurnId) -> None:
        """Deny the open questions of a turn that is being stopped."""
        for waiting in self._open.values():
            if waiting.question.turn_id == turn_id and waiting.answer is None:
                waiting.answer = Answer(decision="deny", by="turn_ended")
                waiting.answered.set()

    def forget(self, conversation_id: ConversationId) -> None:
        """Forget what was allowed for a conversation."""
        self._remembered.pop(conversation_id, None)


def _memory_key(call: ToolCall) -> str:
    """Return what an answer for the whole conversation covers: a tool, or one command of Bash."""
    command = str(call.input.get("command") or "").split()
    return f"Bash:{command[0]}" if call.name == "Bash" and command else call.name
