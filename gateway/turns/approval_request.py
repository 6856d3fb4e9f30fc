"""Ask the person about a call of their turn, and report the question to readers."""

from functools import partial
from typing import Any

import anyio

from gateway.turns.approvals import Answer, AskedCall, Question
from gateway.turns.context import TurnContext
from gateway.turns.sanitizer import off_loop
from memory.intents.builders import intent_from_approval_requested, intent_from_approval_resolved
from policies.permits import Effect
from policies.tools import ToolCall

_WAIT_S = 1.0
"""A call that the run's reader does not reach in this time is asked about all the same."""


class ApprovalRequester:
    """Asks about one turn's calls. See `gate.Asker`."""

    def __init__(self, context: TurnContext) -> None:
        self._context = context

    async def __call__(self, call: ToolCall, effect: Effect) -> Answer:
        """Ask, wait, and report how the question ended."""
        context, turn = self._context, self._context.turn
        asked: list[Question] = []
        answer = Answer(decision="deny", by="turn_ended")
        shown = await off_loop(context.sanitizer.input, call.input)
        await self._wait_until_seen(call)
        asked_s = anyio.current_time()
        try:
            answer = await context.parts.approvals.ask(
                AskedCall(
                    call=call,
                    effect=effect,
                    summary=context.sanitizer.summary(call.input),
                    input=shown,
                    show=context.sanitizer.line,
                ),
                user_id=turn.user_id,
                conversation_id=turn.conversation_id,
                turn_id=turn.id,
                announce=lambda question: self._announce(question, asked),
            )
        finally:
            use = context.evidence.tools.get(call.index)
            if use is not None:
                use.waited_s += anyio.current_time() - asked_s
            for question in asked:
                self._resolved(question, answer)
        if asked and answer.decision == "allow":
            await self._wait_until_stored()
        return answer

    async def _wait_until_seen(self, call: ToolCall) -> None:
        """Wait until the run's reader has reached the call, so that its start comes before the question."""
        context = self._context
        with anyio.move_on_after(_WAIT_S):
            while call.index not in context.evidence.tools:
                await context.call_seen.wait()

    async def _wait_until_stored(self) -> None:
        """Wait until the permission is stored: after a crash, a call without one did not run.

        A turn that is being stopped does not wait; its calls are denied anyway.
        """
        await self._context.control.run_unless_stopped(self._context.events.flush)

    def _announce(self, question: Question, asked: list[Question]) -> None:
        asked.append(question)
        self._context.evidence.steps.add_approval(question.id, question.index)
        carried = {"conversation_id", "turn_id", "input"}  # by the event, or by the call's own
        fields = {key: value for key, value in question.fields().items() if key not in carried}
        self._context.events.emit("approval.requested", **fields)
        build = partial(
            intent_from_approval_requested,
            approval_id=question.id,
            tool_name=question.name,
            summary=question.summary,
        )
        self._context.chronicle.note(build, self._context.parts.now())

    def _resolved(self, question: Question, answer: Answer) -> None:
        if not self._context.is_over:
            more: dict[str, Any] = {
                "message": self._context.sanitizer.text(answer.message),
                "permit": answer.permit,
            }
            if answer.answers is not None:
                shown = self._context.sanitizer.clipped
                more["answers"] = {shown(text): shown(one) for text, one in answer.answers.items()}
            self._context.evidence.steps.resolve_approval(
                question.id, answer.decision, answer.by, more
            )
            build = partial(
                intent_from_approval_resolved,
                approval_id=question.id,
                decision=answer.decision,
                by=answer.by,
            )
            self._context.chronicle.note(build, self._context.parts.now())
            self._context.events.emit(
                "approval.resolved",
                approval_id=question.id,
                index=question.index,
                tool_use_id=question.tool_use_id,
                decision=answer.decision,
                by=answer.by,
                **more,
            )
