"""Approvals: a tool call that waits for a person's answer, and what an answer covers later.

Questions live in memory only: after a restart no run is left that could wait for an answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

import anyio

from gateway.errors import Conflict, NotFound, UnprocessableEntity
from gateway.ids import ApprovalId, ConversationId, TurnId, UserId, new_approval_id
from gateway.turns.questions import FOR_PERSONS, answers_to
from memory.clock import Now, rfc3339
from policies.permits import Effect, Permit, Reach, permits_for
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
    permit: dict[str, Any] | None = None
    """The rule that it left behind, as clients see it."""
    answers: Mapping[str, str] | None = None
    """What the person answered, by the agent's questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call that a person is to be asked about."""

    call: ToolCall
    effect: Effect
    summary: str
    input: dict[str, Any]
    """What would run, safe to show."""
    show: Callable[[str], str]
    """Makes a text of the call safe to show."""


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
    input: dict[str, Any]
    permits: tuple[dict[str, Any], ...]
    """The rules that a yes for the whole conversation may stand for, the narrowest first."""
    expires_at: datetime

    def fields(self) -> dict[str, Any]:
        """Return what clients see of it; events leave out `input`, which `tool.started` has."""
        fields = asdict(self)
        del fields["user_id"]
        return {"approval_id": fields.pop("id"), **fields, "expires_at": rfc3339(self.expires_at)}


@dataclass(slots=True)
class _Open:
    question: Question
    asked: AskedCall
    permits: tuple[Permit, ...]
    answer: Answer | None = None
    answered: anyio.Event = field(default_factory=anyio.Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """A rule under which calls of a conversation pass unasked."""

    id: ApprovalId
    """Of the approval that it came from."""
    permit: Permit
    shown: dict[str, Any]

    def fields(self) -> dict[str, Any]:
        """Return what clients see of it."""
        return {"approval_id": self.id, **self.shown}


class ApprovalDesk:
    """All open questions, and what people allowed for whole conversations."""

    def __init__(self, *, timeout_s: float, now: Now) -> None:
        self._timeout_s = timeout_s
        self._now = now
        self._open: dict[str, _Open] = {}
        self._closed: dict[str, UserId] = {}
        self._allowed: dict[ConversationId, list[Allowed]] = {}

    async def ask(
        self,
        asked: AskedCall,
        *,
        user_id: UserId,
        conversation_id: ConversationId,
        turn_id: TurnId,
        announce: Callable[[Question], None],
    ) -> Answer:
        """Ask a person and wait for the answer; without one in time the call is denied.

        No question is asked about what a rule of the conversation covers. Cancellation withdraws the
        question.
        """
        if any(allowed.permit.covers(asked.effect) for allowed in self.allowed(conversation_id)):
            return Answer(decision="allow", by="remembered")
        permits = () if asked.call.name in FOR_PERSONS else permits_for(asked.effect)
        question = Question(
            id=new_approval_id(),
            user_id=user_id,
            conversation_id=conversation_id,
            turn_id=turn_id,
            index=asked.call.index,
            tool_use_id=asked.call.tool_use_id,
            name=asked.call.name,
            summary=asked.summary,
            input=asked.input,
            permits=tuple(permit.fields(asked.show) for permit in permits),
            expires_at=self._now() + timedelta(seconds=self._timeout_s),
        )
        waiting = self._open[question.id] = _Open(question, asked, permits)
        announce(question)
        try:
            with anyio.move_on_after(self._timeout_s):
                await waiting.answered.wait()
        finally:
            del self._open[question.id]
            self._closed[question.id] = user_id
            if len(self._closed) > _KEPT_CLOSED:
                del self._closed[next(iter(self._closed))]
        return waiting.answer or Answer(decision="deny", by="timeout")

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
        reach: Reach = "exact",
        answers: Mapping[str, str] | None = None,
    ) -> Question:
        """Take a person's answer.

        Args:
            user_id: who answers.
            approval_id: the question.
            decision: whether the call may run.
            message: the person's word to the agent.
            remember: whether a yes holds for the conversation.
            reach: how much a yes for the conversation covers.
            answers: to the agent's questions, by their texts as shown.

        Raises:
            NotFound: there is no such question, or it is another user's.
            Conflict: it was answered already, or no call waits for it any more.
            UnprocessableEntity: a yes cannot reach that far, or the agent did not ask what is answered.
        """
        waiting = self._open.get(approval_id)
        owner = self._closed.get(approval_id) if waiting is None else waiting.question.user_id
        if owner != user_id:
            raise NotFound("There is no such approval.")
        if waiting is None or waiting.answer is not None:
            raise Conflict("This approval was answered already.", code="already_answered")
        asked = waiting.asked
        given = answers_to(asked.call.input, asked.input, answers) if answers else None
        permit = None
        if remember == "conversation" and decision == "allow":
            permit = self._remember(waiting, reach)
        waiting.answer = Answer(
            decision=decision, by="user", message=message, permit=permit, answers=given
        )
        waiting.answered.set()
        return waiting.question

    def end_turn(self, turn_id: TurnId) -> None:
        """Deny the open questions of a turn that is being stopped."""
        for waiting in self._open.values():
            if waiting.question.turn_id == turn_id and waiting.answer is None:
                waiting.answer = Answer(decision="deny", by="turn_ended")
                waiting.answered.set()

    def allowed(self, conversation_id: ConversationId) -> Sequence[Allowed]:
        """List the rules under which calls of a conversation pass unasked, oldest first."""
        return self._allowed.get(conversation_id, ())

    def withdraw(self, conversation_id: ConversationId, approval_id: str) -> None:
        """Ask again about what a rule covers. Raise `NotFound` if the conversation has no such rule."""
        left = [rule for rule in self.allowed(conversation_id) if rule.id != approval_id]
        if len(left) == len(self.allowed(conversation_id)):
            raise NotFound("There is no such rule.")
        self._allowed[conversation_id] = left

    def forget(self, conversation_id: ConversationId) -> None:
        """Forget what was allowed for a conversation."""
        self._allowed.pop(conversation_id, None)

    def _remember(self, waiting: _Open, reach: Reach) -> dict[str, Any]:
        question = waiting.question
        for permit, shown in zip(waiting.permits, question.permits, strict=True):
            if permit.reach == reach:
                rule = Allowed(id=question.id, permit=permit, shown=shown)
                self._allowed.setdefault(question.conversation_id, []).append(rule)
                return shown
        raise UnprocessableEntity(
            f"`reach` cannot be {reach} for this call.", details={"field": "reach"}
        )
