"""What a person is asked about calls: list it, answer it, and the rules that
answers left behind.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gateway.chat.intake import Intake
from gateway.chat.parts import ChatParts, ConversationAccess
from gateway.conversations.model import Approval
from gateway.errors import Conflict
from gateway.ids import TurnId, UserId
from gateway.jsonsafe import pretty_json
from gateway.turns.approval_answer import Reply
from gateway.turns.approvals import answered_already, answers_of, no_rule, stored_answer
from gateway.turns.standing_rules import Allowed


class Approvals:
    """The approvals of users. What is another user's raises `NotFound`."""

    def __init__(self, parts: ChatParts, access: ConversationAccess, intake: Intake) -> None:
        self._parts = parts
        self._access = access
        self._intake = intake

    async def listed(self, user_id: UserId, conversation_id: str = "") -> list[dict[str, Any]]:
        """List what can be answered, and what was lost lately; the pending ones first.

        Raise `NotFound` if there is no such conversation.
        """
        conversation = None
        if conversation_id:
            conversation = (await self._access.find(user_id, conversation_id)).id
        return await self._parts.approvals.listed(user_id, conversation)

    async def turn_of(self, user_id: UserId, approval_id: str) -> TurnId:
        """Return the turn that asked. Raise `NotFound` if there is no such approval."""
        return (await self._parts.approvals.known(user_id, approval_id)).turn_id

    async def answer(self, user_id: UserId, approval_id: str, reply: Reply) -> TurnId | None:
        """Take a person's answer; return the turn in which it counts, None if nothing runs because
        of it.

        If no run waits for it, a yes starts one, and so does a no with a word for the agent.

        Raises:
            NotFound: there is no such approval.
            Conflict: it was answered already, or cannot be answered any more.
            UnprocessableEntity: a yes cannot reach that far, or the agent did not ask what is
            answered. Overloaded, ShuttingDown: no run can be started now; nothing was stored.
        """
        desk = self._parts.approvals
        await self._require_here(user_id, approval_id)
        live = await desk.answer(user_id, approval_id, reply)
        if live is not None:
            if reply.decision == "allow" and reply.remember == "conversation":
                of = {"conversation": live.approval.conversation_id, "reach": reply.reach}
                await self._parts.record(user_id, "permission.granted", approval_id, **of)
            return live.approval.turn_id
        approval = await desk.find(user_id, approval_id)
        return await self._answer_waiting(approval, reply)

    async def _answer_waiting(self, approval: Approval, reply: Reply) -> TurnId | None:
        if reply.decision == "allow" and reply.remember == "conversation":
            raise no_rule()
        given = answers_of(approval.input, approval, reply)
        answer = stored_answer(approval.id, reply, given, self._parts.now())
        if reply.decision == "allow" or reply.message.strip():
            accepted = await self._intake.accept_answer(approval, answer)
            return accepted.turn_id
        if not await self._parts.approvals.store.answer(replace(answer, keeps_input=False)):
            raise answered_already()
        return None

    async def extend(self, user_id: UserId, approval_id: str) -> str:
        """Restart the time limit of a pending approval; return when it expires then.

        Raises:
            NotFound: there is no such approval.
            Conflict: no run waits for its answer.
        """
        await self._require_here(user_id, approval_id)
        question = await self._parts.approvals.extend(user_id, approval_id)
        if question is None:
            await self._parts.approvals.find(user_id, approval_id)
            raise Conflict(
                "No run waits for this approval; it can be answered at any time.",
                code="approval_not_pending",
            )
        expires_at: str = question.fields()["expires_at"]
        return expires_at

    async def _require_here(self, user_id: UserId, approval_id: str) -> None:
        """Raise `HeldElsewhere` if another server's run waits for an answer, or may begin one."""
        if not self._parts.approvals.is_pending(approval_id):
            approval = await self._parts.approvals.known(user_id, approval_id)
            await self._access.require_here(approval.conversation_id)

    async def input(self, user_id: UserId, approval_id: str) -> str:
        """Return the whole input of a call that can be answered, as text; raises
        as `answer` does.
        """
        approval = await self._parts.approvals.find(user_id, approval_id)
        return pretty_json(approval.input)

    async def rules(self, user_id: UserId, conversation_id: str) -> Sequence[Allowed]:
        """List the rules under which calls of a conversation pass unasked, oldest first."""
        conversation = await self._access.find(user_id, conversation_id)
        return self._parts.approvals.rules.of(conversation.id)

    async def withdraw_rule(self, user_id: UserId, conversation_id: str, approval_id: str) -> None:
        """Ask again about what a rule covers. Raise `NotFound` if the conversation has no such
        rule.
        """
        conversation = await self._access.find(user_id, conversation_id)
        self._parts.approvals.rules.withdraw(conversation.id, approval_id)
