"""Approvals: a tool call that waits for a person's answer, and what an answer covers later.

An approval is stored before it is shown. While its run waits for the answer it is *pending*. If the
run ends first, because the time is over or the server stops, the approval is *waiting*: an answer
then starts a new run.
"""

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, Literal

import anyio

from gateway.conversations.leases import Node
from gateway.conversations.model import Approval, ApprovalAnswer
from gateway.conversations.sql.approvals import ApprovalStore
from gateway.errors import Conflict, NotFound, UnprocessableEntity
from gateway.ids import ApprovalId, ConversationId, TurnId, UserId
from gateway.turns.approval_answer import Answer, Reply
from gateway.turns.approval_views import (
    CHANGE,
    AskReason,
    Question,
    Touches,
    pending_fields,
    waiting_fields,
)
from gateway.turns.questions import FOR_PERSONS, answers_to
from gateway.turns.standing_rules import Allowed, StandingRules
from memory.clock import Now
from memory.errors import CommitUnknown, StoreUnavailable
from policies.permits import Effect, Permit, permits_for

_log = logging.getLogger(__name__)

_LOST_LISTED = timedelta(days=1)
"""How long an approval that can no longer be answered is listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call that a person is to be asked about."""

    approval: Approval
    """With what would run as the person sees it."""
    given: Mapping[str, Any]
    """The call's input."""
    effect: Effect
    show: Callable[[str], str]
    """Makes a text of the call safe to show."""
    why: AskReason = CHANGE
    touches: Touches | None = None
    """What an unlisted program may touch."""


@dataclass(slots=True, eq=False)
class _Open:
    question: Question
    asked: AskedCall
    permits: tuple[Permit, ...]
    deadline_s: float
    on_extended: Callable[[Question], None]
    epoch: int
    is_shown: bool = False
    is_being_answered: bool = False
    answer: Answer | None = None
    changed: anyio.Event = field(default_factory=anyio.Event)

    def wake(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()

    def ending(self) -> Answer | None:
        """Return how it ended, as of now; None if it has not."""
        return self.answer

    async def wait(self) -> Answer:
        """Wait for the answer; when the time is over, the approval waits without its run."""
        while self.answer is None:
            changed = self.changed
            left_s = self.deadline_s - anyio.current_time()
            with anyio.move_on_after(math.inf if self.is_being_answered else left_s):
                await changed.wait()
                continue
            if self.ending() is None and not self.is_being_answered:
                self.answer = Answer(decision="deny", by="waiting")
        return self.answer


class ApprovalDesk:
    """All pending approvals, and the store of those whose run has ended."""

    def __init__(
        self,
        store: ApprovalStore,
        *,
        timeout_s: float,
        now: Now,
        is_on: bool = True,
        node: Node | None = None,
    ) -> None:
        """Without `is_on` nobody is asked about changes, and no waiting approval is answered.

        `node` is this server where others share the database.
        """
        self.store = store
        self._timeout_s = timeout_s
        self._now = now
        self._is_on = is_on
        self._node = node
        self._open: dict[str, _Open] = {}
        self.rules = StandingRules()
        """What people allowed for whole conversations."""

    async def ask(
        self,
        asked: AskedCall,
        *,
        announce: Callable[[Question], None],
        on_extended: Callable[[Question], None] = lambda _: None,
        epoch: int = 0,
    ) -> Answer:
        """Ask a person and wait for the answer; `epoch` is that of the conversation's lease.

        No question is asked about what a rule of the conversation covers. Whoever asked withdraws
        the approval after an answer by `turn_ended`, and after a cancellation. Raise
        `StoreUnavailable` if the approval cannot be stored.
        """
        approval = asked.approval
        rule = self.rules.covering(approval.conversation_id, asked.effect)
        if rule is not None:
            return Answer(
                decision="allow",
                by="remembered",
                approval_id=rule.id,
                permit=rule.shown,
                at=rule.at,
            )
        is_confined = asked.touches == "workspace"
        permits = permits_for(asked.effect, is_confined=is_confined)
        if approval.name in FOR_PERSONS:
            permits = ()
        question = Question(
            approval=approval,
            permits=tuple(permit.fields(asked.show) for permit in permits),
            expires_at=approval.created_at + timedelta(seconds=self._timeout_s),
            why=asked.why,
            touches=asked.touches,
        )
        deadline_s = anyio.current_time() + self._timeout_s
        waiting = _Open(question, asked, permits, deadline_s, on_extended, epoch)
        self._open[question.id] = waiting
        try:
            await self._add(replace(approval, question=question.shown()), epoch)
            waiting.is_shown = True
            announce(question)
            return await waiting.wait()
        finally:
            del self._open[question.id]

    async def _add(self, approval: Approval, epoch: int) -> None:
        cancelled = anyio.get_cancelled_exc_class()
        try:
            await self.store.add(approval, epoch=epoch)
        except (CommitUnknown, cancelled):  # it may be stored all the same, and nobody saw it
            await self.withdraw_approval(approval.id, epoch)
            raise

    def pending(self, user_id: UserId, conversation_id: str | None = None) -> Sequence[Question]:
        """List a user's pending approvals, oldest first."""
        return [
            waiting.question
            for waiting in self._open.values()
            if waiting.is_shown
            and waiting.question.approval.user_id == user_id
            and conversation_id in {None, waiting.question.approval.conversation_id}
        ]

    async def listed(
        self, user_id: UserId, conversation_id: ConversationId | None
    ) -> list[dict[str, Any]]:
        """Return a user's approvals for clients: the pending ones, then those whose run ended."""
        live = set(self._open)
        stored = await self.store.listed(
            user_id, conversation_id, lost_since=self._now() - _LOST_LISTED
        )
        live |= set(self._open)
        stored = [approval for approval in stored if approval.id not in live]
        elsewhere = await self._asked_elsewhere(user_id, stored)
        pending = [
            *(
                (waiting.approval.created_at, waiting.fields())
                for waiting in self.pending(user_id, conversation_id)
            ),
            *(
                (approval.created_at, pending_fields(approval))
                for approval in stored
                if approval.id in elsewhere
            ),
        ]
        return [
            *(fields for _, fields in sorted(pending, key=itemgetter(0))),
            *(
                waiting_fields(approval, is_lost=approval.state == "lost", is_off=not self._is_on)
                for approval in stored
                if approval.id not in elsewhere
            ),
        ]

    async def _asked_elsewhere(
        self, user_id: UserId, stored: Sequence[Approval]
    ) -> Collection[ApprovalId]:
        """Return those of some approvals whose runs wait for the answer at other servers."""
        if self._node is None or not any(approval.question for approval in stored):
            return ()
        asked = await self.store.asked_elsewhere(user_id, self._node)
        return {approval.id for approval in stored if approval.question and approval.id in asked}

    async def known(self, user_id: UserId, approval_id: str) -> Approval:
        """Return an approval in any state. Raise `NotFound` if there is none of the user."""
        approval = await self.store.get(ApprovalId(approval_id), user_id)
        if approval is None:
            raise NotFound("There is no such approval.")
        return approval

    async def find(self, user_id: UserId, approval_id: str) -> Approval:
        """Return an approval that can be answered.

        Raises:
            NotFound: there is no such approval, or it is another user's.
            Conflict: it was answered already, or cannot be answered any more.
        """
        approval = await self.known(user_id, approval_id)
        if approval.state == "answered":
            raise answered_already()
        is_live = approval.id in self._open
        if approval.state != "open" or not (self._is_on or is_live):
            raise approval_over()
        return approval

    async def answer(self, user_id: UserId, approval_id: str, reply: Reply) -> Question | None:
        """Take a person's answer for a run that waits for it; return None if no run does.

        Raises:
            NotFound: it is another user's.
            Conflict: it was answered already.
            UnprocessableEntity: a yes cannot reach that far, or the agent did not ask that.
        """
        waiting = self._open.get(approval_id)
        if waiting is None or not waiting.is_shown:
            return None
        question = waiting.question
        if question.approval.user_id != user_id:
            raise NotFound("There is no such approval.")
        ended = waiting.ending()
        if ended is not None and ended.by != "user":
            return None
        if waiting.is_being_answered or ended is not None:
            raise answered_already()
        given = answers_of(waiting.asked.given, question.approval, reply)
        permit, shown = _permit_for(waiting, reply)
        at = self._now()
        waiting.is_being_answered = True
        try:
            with anyio.CancelScope(shield=True):
                answer = stored_answer(question.id, reply, given, at)
                taken = await self._store_answer(answer, user_id)
                ended = waiting.ending()
                if taken and ended is not None:  # its run ended meanwhile
                    if ended.by != "waiting":
                        raise approval_over()
                    await self.store.reopen(question.id, epoch=waiting.epoch)
                    return None
        finally:
            waiting.is_being_answered = False
            waiting.wake()
        if not taken:
            raise answered_already()
        waiting.answer = Answer(
            decision=reply.decision,
            by="user",
            message=reply.message,
            permit=shown,
            answers=given,
            approval_id=question.id,
            at=at,
        )
        if permit is not None and shown is not None:
            rule = Allowed(id=question.id, permit=permit, shown=shown, at=at)
            self.rules.add(question.approval.conversation_id, rule)
        return question

    async def _store_answer(self, answer: ApprovalAnswer, user_id: UserId) -> bool:
        """Store an answer that a run waits for; return whether it counts. One that is stored does
        so, if the database's answer to that was lost.
        """
        lost: CommitUnknown | None = None
        try:
            if await self.store.answer(answer):
                return True
        except CommitUnknown as exc:
            lost = exc
        known = await self.store.get(answer.approval_id, user_id)
        if lost is not None and known is not None and known.state == "open":
            raise lost
        return known is not None and (known.state, *_said(known)) == ("answered", *_said(answer))

    def is_pending(self, approval_id: str) -> bool:
        """Return whether a run of this server waits for an answer."""
        return approval_id in self._open

    async def extend(self, user_id: UserId, approval_id: str) -> Question | None:
        """Restart the time limit of a pending approval; None if no run waits for it."""
        waiting = self._open.get(approval_id)
        if waiting is None or not waiting.is_shown or waiting.answer is not None:
            return None
        if waiting.question.approval.user_id != user_id:
            raise NotFound("There is no such approval.")
        waiting.deadline_s = anyio.current_time() + self._timeout_s
        expires_at = self._now() + timedelta(seconds=self._timeout_s)
        waiting.question = question = replace(waiting.question, expires_at=expires_at)
        waiting.on_extended(question)
        waiting.wake()
        if self._node is not None:  # the others list what is stored
            await self.store.extend(question.id, question.shown(), epoch=waiting.epoch)
        return question

    async def of_call(self, turn_id: TurnId, index: int) -> Approval | None:
        """Return the approval of a turn's call that can still be answered."""
        found = await self.store.of_turn(turn_id)
        return next(
            (
                approval
                for approval in found
                if approval.call_index == index and approval.state == "open"
            ),
            None,
        )

    async def withdraw_approval(self, approval_id: ApprovalId, epoch: int) -> None:
        """Note that an approval's turn was stopped; unless stored, it can still be answered."""
        with anyio.CancelScope(shield=True):
            try:
                await self.store.withdraw(approval_id, self._now(), epoch=epoch)
            except StoreUnavailable:
                _log.exception("approval_not_withdrawn")

    def end_turn(self, turn_id: TurnId, *, is_waiting: bool) -> None:
        """End the pending approvals of a turn that is being stopped.

        With `is_waiting` they can still be answered; otherwise the calls are denied.
        """
        by: Literal["waiting", "turn_ended"] = "waiting" if is_waiting else "turn_ended"
        for waiting in self._open.values():
            if waiting.question.approval.turn_id == turn_id and waiting.answer is None:
                waiting.answer = Answer(decision="deny", by=by)
                waiting.wake()


def _said(answer: Approval | ApprovalAnswer) -> tuple[object, ...]:
    return answer.decision, answer.message, answer.answers


def answered_already() -> Conflict:
    """Return the error about an approval that was answered."""
    return Conflict("This approval was answered already.", code="already_answered")


def approval_over() -> Conflict:
    """Return the error about an approval that can no longer be answered."""
    return Conflict("This approval can no longer be answered.", code="approval_over")


def answers_of(
    asked: Mapping[str, Any], approval: Approval, reply: Reply
) -> Mapping[str, str] | None:
    """Return the answers to the agent's questions as it asked them; None if there are none."""
    return answers_to(asked, approval.input, reply.answers) if reply.answers else None


def stored_answer(
    approval_id: ApprovalId, reply: Reply, answers: Mapping[str, str] | None, at: datetime
) -> ApprovalAnswer:
    """Return an answer as it is stored."""
    return ApprovalAnswer(
        approval_id=approval_id,
        decision=reply.decision,
        message=reply.message,
        answers=answers,
        at=at,
    )


def _permit_for(waiting: _Open, reply: Reply) -> tuple[Permit | None, dict[str, Any] | None]:
    """Return the rule that a yes for the conversation stands for, and what clients see of it."""
    if reply.remember != "conversation" or reply.decision != "allow":
        return None, None
    if not waiting.permits:
        raise no_rule()
    for permit, shown in zip(waiting.permits, waiting.question.permits, strict=True):
        if permit.reach == reply.reach:
            return permit, shown
    raise UnprocessableEntity(
        f"`reach` cannot be {reply.reach} for this call.", details={"field": "reach"}
    )


def no_rule() -> UnprocessableEntity:
    """Return the error about an approval where a yes counts for its own call alone."""
    return UnprocessableEntity(
        '`remember` must be "once": a yes to this approval lets its call pass once and cannot stand'
        " for the whole conversation.",
        details={"field": "remember"},
    )
