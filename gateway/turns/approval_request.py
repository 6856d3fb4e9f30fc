"""Ask the person about a call of their turn, and report the question to readers."""

import json
import logging
from functools import partial
from typing import Any, Final

import anyio

from gateway.conversations.model import Approval
from gateway.ids import ApprovalId, new_approval_id
from gateway.jsonsafe import estimate_chars
from gateway.turns.approval_answer import Answer
from gateway.turns.approval_views import CHANGE, AskReason, Question, Touches
from gateway.turns.approvals import AskedCall
from gateway.turns.asked_input import fingerprint_of, show_input
from gateway.turns.call_review import may_review
from gateway.turns.context import TurnContext
from gateway.turns.sanitizer import off_loop
from gateway.turns.sentences import PROMPTS, Language, say
from memory.errors import StoreUnavailable
from memory.intents.builders import intent_from_approval_requested, intent_from_approval_resolved
from policies.calls import ToolCall
from policies.permits import Effect

_log = logging.getLogger(__name__)

_WAIT_S = 1.0
"""A call that the run's reader does not reach in this time is asked about all the same."""
_CARRIED: Final = frozenset({"conversation_id", "turn_id"})
"""Fields of an approval that every event has."""


def message_of(approval: Approval) -> str:
    """Return what a person's answer to a waiting approval is in the conversation."""
    language: Language = "zh" if approval.language == "zh" else "en"
    key = "given_deny" if approval.decision == "deny" else "given_allow"
    answers = approval.answers or {}
    lines = [
        say(language, key, call=f"{approval.name}: {approval.summary}"),
        *(f"{question} {answer}" for question, answer in answers.items()),
        *([approval.message] if approval.message else []),
    ]
    return "\n".join(lines)


def prompt_of(approval: Approval) -> str:
    """Return what the agent is sent after a person's answer to a waiting approval."""
    prompts = PROMPTS["zh" if approval.language == "zh" else "en"]
    call = json.dumps({"name": approval.name, "input": approval.input}, ensure_ascii=False)
    is_denied = approval.decision == "deny"
    fence = "json" if is_denied else "tool-call"
    asked = prompts["call_denied" if is_denied else "call_allowed"]
    parts = [asked, f"```{fence}\n{call}\n```"]
    if approval.message:
        parts.append(prompts["person_said"].format(message=approval.message))
    return "\n\n".join(parts)


class ApprovalRequester:
    """Asks about one turn's calls. See `gate.Asker`."""

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self._grant: Approval | None = None
        """The waiting approval whose answer started the turn: a yes lets exactly its call pass,
        once."""

    async def __call__(self, call: ToolCall, effect: Effect, why: AskReason = CHANGE) -> Answer:
        """Ask, wait, and report how the question ended."""
        context = self._context
        answer = (
            self._granted(call)
            or await self._review(call, effect, why)
            or await self._ask(call, effect, why)
        )
        if answer.allowed_by is not None:
            context.evidence.allow(call.index, answer.allowed_by)
        if answer.by == "waiting":
            context.control.stop("waiting", "waiting")
        return answer

    async def take_grant(self, approval_id: ApprovalId) -> str:
        """Take the answer that started the turn; return what the agent is sent because of it."""
        parts, turn = self._context.parts, self._context.turn
        self._grant = await parts.approvals.store.get(approval_id, turn.user_id)
        return turn.message if self._grant is None else prompt_of(self._grant)

    def _granted(self, call: ToolCall) -> Answer | None:
        """Return the yes that started the turn, if it is to this call; it counts once."""
        granted = self._grant
        if granted is None or granted.decision != "allow":
            return None
        if granted.fingerprint != fingerprint_of(call, self._context.workspace.root):
            return None
        self._grant = None
        answer = Answer(
            decision="allow",
            by="user",
            message=granted.message,
            answers=granted.answers,
            approval_id=granted.id,
            at=granted.ended_at,
        )
        self._context.evidence.steps.add_approval(granted.id, call.index)
        self._resolved(granted.id, call, answer)
        return answer

    async def _review(self, call: ToolCall, effect: Effect, why: AskReason) -> Answer | None:
        """Return the side model's yes; None if the person is to be asked."""
        context, parts = self._context, self._context.parts
        reviewer = parts.reviewer
        if reviewer is None or not may_review(call, why, is_confined=parts.is_confined):
            return None
        if parts.approvals.rules.covering(context.turn.conversation_id, effect) is not None:
            return None
        request = context.sanitizer.text(context.turn.message)
        shown = {"tool": call.name, "input": await off_loop(context.sanitizer.input, call.input)}
        await self._wait_until_seen(call)
        asked_s, is_allowed = anyio.current_time(), False

        async def review() -> None:
            nonlocal is_allowed
            is_allowed = await reviewer.allows(request, shown, chars=estimate_chars(call.input))

        with context.trace.asking():
            await context.control.run_unless_stopped(review)
        use = context.evidence.tools.get(call.index)
        if use is not None:
            use.waited_s += anyio.current_time() - asked_s
        if context.control.is_stopping:
            return Answer(decision="deny", by="turn_ended")
        if not is_allowed:
            return None
        answer = Answer(decision="allow", by="model", at=parts.now())
        self._resolved(None, call, answer)
        await self._wait_until_stored()
        return answer

    async def _ask(self, call: ToolCall, effect: Effect, why: AskReason) -> Answer:
        context, turn = self._context, self._context.turn
        asked: list[Question] = []
        answer = Answer(decision="deny", by="turn_ended")
        show = partial(show_input, secrets=context.parts.secrets, workspace=context.workspace.root)
        shown = await off_loop(show, call.input)
        masked = await off_loop(context.sanitizer.input, call.input)
        await self._wait_until_seen(call)
        asked_s = anyio.current_time()
        try:
            answer = await context.parts.approvals.ask(
                AskedCall(
                    approval=Approval(
                        id=new_approval_id(),
                        user_id=turn.user_id,
                        conversation_id=turn.conversation_id,
                        turn_id=turn.id,
                        call_index=call.index,
                        tool_use_id=call.tool_use_id,
                        name=call.name,
                        summary=context.sanitizer.summary(call.input),
                        language=context.language,
                        input=shown.input,
                        hidden=shown.hidden,
                        fingerprint=fingerprint_of(call, context.workspace.root),
                        created_at=context.parts.now(),
                    ),
                    given=call.input,
                    effect=effect,
                    show=context.sanitizer.command_line,
                    why=why,
                    touches=self._touches(why),
                ),
                announce=lambda question: self._announce(question, masked, asked),
                on_extended=self._extended,
                epoch=context.events.epoch,
            )
        except StoreUnavailable:
            _log.exception("approval_not_stored")
            answer = Answer(decision="deny", by="not_stored")
        except anyio.get_cancelled_exc_class():
            if context.control.keeps_questions:
                answer = Answer(decision="deny", by="waiting")
            raise
        finally:
            use = context.evidence.tools.get(call.index)
            if use is not None:
                use.waited_s += anyio.current_time() - asked_s
            for question in asked:
                await self._ended(question, call, answer)
        if answer.by == "remembered":
            self._resolved(None, call, answer)
        if answer.decision == "allow":
            await self._wait_until_stored()
        return answer

    def _touches(self, why: AskReason) -> Touches | None:
        if not why.is_program:
            return None
        return "workspace" if self._context.parts.is_confined else "machine"

    async def _ended(self, question: Question, call: ToolCall, answer: Answer) -> None:
        """Report how a question ended, at once, also when its call was cancelled."""
        if answer.by == "waiting":
            self._context.evidence.waiting.add(call.index)
            self._context.evidence.steps.resolve_approval(
                question.id, None, None, {"state": "waiting"}
            )
            return
        self._resolved(question.id, call, answer)
        if answer.by == "turn_ended":
            epoch = self._context.events.epoch
            await self._context.parts.approvals.withdraw_approval(question.id, epoch)

    async def _wait_until_seen(self, call: ToolCall) -> None:
        """Wait until the run's reader has reached the call, so that its start comes before the
        question.
        """
        context = self._context
        with anyio.move_on_after(_WAIT_S):
            while call.index not in context.evidence.tools:
                await context.call_seen.wait()

    async def _wait_until_stored(self) -> None:
        """Wait until the permission is stored: after a crash, a call without one did not run.

        A turn that is being stopped does not wait; its calls are denied anyway.
        """
        await self._context.control.run_unless_stopped(self._context.events.flush)

    def _announce(self, question: Question, masked: dict[str, Any], asked: list[Question]) -> None:
        """Report a question; what events hold of the input is masked like everything in them."""
        asked.append(question)
        approval = question.approval
        self._context.evidence.steps.add_approval(question.id, approval.call_index)
        fields = {key: value for key, value in question.fields().items() if key not in _CARRIED}
        if masked != approval.input:
            fields |= {"input": masked, "truncated": True}
        self._context.events.emit("approval.requested", **fields)
        build = partial(
            intent_from_approval_requested,
            approval_id=question.id,
            tool_name=approval.name,
            summary=approval.summary,
        )
        self._context.chronicle.note(build, self._context.parts.now())

    def _extended(self, question: Question) -> None:
        fields = question.fields()
        names = ("approval_id", "index", "tool_use_id", "expires_at")
        self._context.events.emit("approval.extended", **{name: fields[name] for name in names})

    def _resolved(self, approval_id: str | None, call: ToolCall, answer: Answer) -> None:
        """Report an answer; without an id nobody was asked, because an earlier yes
        covers the call.
        """
        if self._context.is_over:
            return
        more: dict[str, Any] = {
            "message": self._context.sanitizer.text(answer.message),
            "permit": answer.permit,
            "allowed_by": answer.allowed_by,
        }
        if answer.answers is not None:
            shown = self._context.sanitizer.clipped
            more["answers"] = {shown(text): shown(one) for text, one in answer.answers.items()}
        if approval_id is not None:
            self._context.evidence.steps.resolve_approval(
                approval_id, answer.decision, answer.by, more
            )
            build = partial(
                intent_from_approval_resolved,
                approval_id=approval_id,
                decision=answer.decision,
                by=answer.by,
            )
            self._context.chronicle.note(build, self._context.parts.now())
        self._context.events.emit(
            "approval.resolved",
            approval_id=approval_id,
            index=call.index,
            tool_use_id=call.tool_use_id,
            decision=answer.decision,
            by=answer.by,
            **more,
        )
