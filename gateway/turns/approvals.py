"""A person's word on a tool call: asked, waited for, remembered, or given up.

Questions live in memory only: a server that restarts has no run left that could wait for an answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import anyio

from gateway.errors import Conflict, NotFound
from gateway.ids import ApprovalId, ConversationId, TurnId, UserId, new_approval_id
from memory.clock import Now, rfc3339
from policies.tools import ToolCall

Decision = Literal["allow", "deny"]
Remember = Literal["once", "conversation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a question ended; `by` is `user`, `timeout`, `remembered` or `turn_ended`."""

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
        """Give what clients see of it."""
        return {
            "approval_id": self.id,
            "conversation_id": self.conversation_id,
            "turn_id": self.turn_id,
            "index": self.index,
            "tool_use_id": self.tool_use_id,
            "name": self.name,
            "summary": self.summary,
            "expires_at": rfc3339(self.expires_at),
        }


class _Open:
    def __init__(self, question: Question, memory_key: str) -> None:
        self.question = question
        self.memory_key = memory_key
        self.answer: Answer | None = None
        self.answered = anyio.Event()


class ApprovalDesk:
    """All questions that wait, and what people allowed for whole conversations."""

    def __init__(self, *, timeout_s: float, now: Now) -> None:
        self._timeout_s = timeout_s
        self._now = now
        self._open: dict[str, _Open] = {}
        self._answered: dict[str, UserId] = {}
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
        """Ask a person and wait for the answer; nobody's answer in time denies.

        What was allowed for the whole conversation is not asked again: then there is no question.
        Cancellation withdraws the question.
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
            self._close(question)
        return question, waiting.answer or Answer(decision="deny", by="timeout")

    def pending(self, user_id: UserId, conversation_id: str | None = None) -> Sequence[Question]:
        """List a user's open questions, oldest first."""
        return [
            one.question
            for one in self._open.values()
            if one.question.user_id == user_id
            and conversation_id in {None, one.question.conversation_id}
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
            NotFound: there is no such question, or it is another's.
            Conflict: it was answered already, or nobody waits for it any more.
        """
        waiting = self._open.get(approval_id)
        if waiting is None or waiting.question.user_id != user_id:
            if self._answered.get(approval_id) == user_id:
                raise Conflict("This approval was answered already.", code="already_answered")
            raise NotFound("There is no such approval.")
        if waiting.answer is not None:
            raise Conflict("This approval was answered already.", code="already_answered")
        waiting.answer = Answer(decision=decision, by="user", message=message)
        if remember == "conversation" and decision == "allow":
            self._remembered.setdefault(waiting.question.conversation_id, set()).add(
                waiting.memory_key
            )
        waiting.answered.set()
        return waiting.question

    def end_turn(self, turn_id: TurnId) -> None:
        """Deny what a turn still waits for: it is being ended."""
        for waiting in self._open.values():
            if waiting.question.turn_id == turn_id and waiting.answer is None:
                waiting.answer = Answer(decision="deny", by="turn_ended")
                waiting.answered.set()

    def forget(self, conversation_id: ConversationId) -> None:
        """Forget what was allowed for a conversation."""
        self._remembered.pop(conversation_id, None)

    def _close(self, question: Question) -> None:
        self._answered[question.id] = question.user_id
        while len(self._answered) > 1000:  # noqa: PLR2004  late answers are rare; older ones get 404
            del self._answered[next(iter(self._answered))]


def _memory_key(call: ToolCall) -> str:
    """Name what "for this conversation" covers: a tool, in Bash a single command."""
    command = str(call.input.get("command") or "").split()
    return f"Bash:{command[0]}" if call.name == "Bash" and command else call.name
