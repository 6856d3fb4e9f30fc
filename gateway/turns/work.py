"""The steps of one turn.

    started → client → the prompt → guards → result → told
                         memory ↗

No prompt is sent before the start is stored, with the message itself where its lane was free: a turn
that a crash finds queued was never asked, and may run again. The prompt does not wait for memory, but the model does. Whatever happens in between, the
turn ends with exactly one result, made from evidence.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import anyio

from gateway.conversations.model import Conversation
from gateway.engine.events import ClientLost, RunFinished, SessionReady, TextDone
from gateway.engine.protocol import ClientDead, Prompt
from gateway.turns.approval_request import ApprovalRequester
from gateway.turns.case_tools import CaseCalls
from gateway.turns.client_lease import ClientLease
from gateway.turns.completion import TurnCompletion
from gateway.turns.context import TurnContext
from gateway.turns.control import TurnClock
from gateway.turns.denial_reasons import describe_denial
from gateway.turns.event_emitter import EventEmitter
from gateway.turns.evidence import SERVICE_FAILURES
from gateway.turns.gate import TurnGate
from gateway.turns.guards import DoomLoop, needs_follow_through, needs_summary
from gateway.turns.reply import broke_off
from gateway.turns.run_driver import RunDriver
from gateway.turns.sentences import FOLLOW_SKILL_PROMPT, SUMMARY_PROMPT
from gateway.turns.turn_recall import TurnRecall
from gateway.turns.typed_commands import (
    GatewayAnswer,
    SkillRequest,
    list_skills_blocking,
    looks_typed,
    read_command,
)
from memory.errors import StoreUnavailable
from policies.tools import ToolCall
from policies.verdict import Allow, Deny

_log = logging.getLogger(__name__)


class TurnWork:
    """One turn being run; `perform` it once."""

    def __init__(self, context: TurnContext, conversation: Conversation) -> None:
        limits = context.parts.limits
        self._context = context
        self._conversation = conversation
        self._prompt_text = context.turn.message
        self._clock = TurnClock(limits.timeout_s)
        self._turn_recall = TurnRecall(context)
        self._client_lease = ClientLease(context)
        self._completion = TurnCompletion(context)
        self._emitter = EventEmitter(context, DoomLoop(limits.doom_loop_threshold))
        self._emitter.on_first_text = self._first_text
        cases = context.parts.memory.cases
        self._case_calls = (
            CaseCalls(cases, conversation, context.parts.memory.tools)
            if cases is not None and conversation.uses_cases
            else None
        )
        self._gate = TurnGate(
            policy=context.parts.policy,
            evidence=context.evidence,
            control=context.control,
            clock=self._clock,
            doom_loop=DoomLoop(limits.doom_loop_threshold),
            asker=ApprovalRequester(context) if context.parts.ask_changes else None,
            ask_changes=context.parts.ask_changes,
            write_down=self._write_permission,
            show=self._shown_denial,
        )
        self._driver = RunDriver(context, self._emitter, self._gate.judge_unasked)
        self._driver.on_session = self._session_ready
        self._sent = anyio.Event()
        self._driver.on_sent = self._sent.set

    async def perform(self) -> None:
        """Do everything, from the first event to the last."""
        try:
            await self._run()
        except Exception:  # noqa: BLE001  told in the result
            _log.exception("turn_failed")
            self._completion.cause = "internal"
        self._turn_recall.settle()
        for use in self._context.evidence.settle(self._context.parts.now()):
            self._emitter.tool_finished(use)
        await self._completion.close(self._turn_recall.fields, self._conversation.session_id)

    async def _run(self) -> None:
        context = self._context
        answer = await self._read_command()
        told = context.chronicle.received(self._conversation, context.started_at)
        context.journal.write(
            "request",
            message=context.turn.message,
            user_id=context.turn.user_id,
            **({} if self._prompt_text == context.turn.message else {"prompt": self._prompt_text}),
            **told,
        )
        if context.turn.state == "queued":
            context.events.emit(
                "turn.started", model=context.evidence.model, log_file=context.journal.log_file
            )
            await context.parts.turns.start(context.turn.id, context.started_at)
        if answer is not None:
            await self._answer(answer)
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stop_when_time_is_over)
            tasks.start_soon(self._withdraw_questions_when_stopped)
            await self._converse()
            tasks.cancel_scope.cancel()

    async def _read_command(self) -> str | None:
        """Look for a typed command; return the gateway's own answer to it, if it is for the gateway.

        A request for a skill becomes the prompt instead.
        """
        context = self._context
        if not looks_typed(context.turn.message):
            return None
        skills = await anyio.to_thread.run_sync(list_skills_blocking, Path(context.parts.workspace))
        match read_command(context.turn.message, skills):
            case SkillRequest(name, words):
                asked = context.say("skill_request", name=name)
                self._prompt_text = f"{asked}\n\n{words}" if words else asked
            case GatewayAnswer(key, name):
                shown = ", ".join(f"/{one}" for one in skills)
                context.evidence.model = ""
                return context.say(key, name=name, skills=shown or "–")
            case None:
                pass
        return None

    async def _answer(self, text: str) -> None:
        """Answer without the agent, and say so."""
        context = self._context
        context.notice("answered_by_gateway")
        for event in (
            TextDone(text=text),
            RunFinished(subtype="success", is_error=False, result=text, stop_reason="end_turn"),
        ):
            await self._emitter.tell(event)
            context.evidence.take(event, context.parts.now())

    async def _converse(self) -> None:
        try:
            async with anyio.create_task_group() as beside:
                beside.start_soon(self._recall)
                await self._unless_stopped(self._take_client)
                await self._ask_first()
                beside.cancel_scope.cancel()
            await self._send_on()
        finally:
            with anyio.CancelScope(shield=True):
                await self._client_lease.give_back(is_idle=self._driver.is_idle)

    async def _recall(self) -> None:
        try:
            await self._unless_stopped(self._ask_memory)
        finally:
            self._turn_recall.settle()

    async def _ask_memory(self) -> None:
        """Ask while the client is got; one that is there gets the prompt first."""
        if self._context.parts.pool.is_hot(self._conversation.id):
            await self._sent.wait()
        await self._turn_recall.ask(self._conversation)

    async def _take_client(self) -> None:
        if not await self._client_lease.take(self._conversation):
            self._completion.cause = self._client_lease.refusal

    async def _replace_client(self) -> None:
        self._driver.is_idle = True
        if not await self._client_lease.replace(self._conversation):
            self._completion.cause = self._client_lease.refusal

    async def _unless_stopped(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do a part of the work that has nothing to drain: a stop cancels it."""
        async with anyio.create_task_group() as tasks:

            async def cancel_when_stopped() -> None:
                await self._context.control.wait_stop()
                tasks.cancel_scope.cancel()

            tasks.start_soon(cancel_when_stopped)
            if not self._context.control.is_stopping:
                await work()
            tasks.cancel_scope.cancel()

    async def _ask_first(self) -> None:
        """Send the person's message; once more to a new client where the first had just died."""
        prompt = Prompt(
            text=self._prompt_text,
            context=self._turn_recall.context,
            gatekeeper=self._gate,
            call_own=self._case_calls,
        )
        try:
            await self._ask(prompt)
        except ClientDead:
            await self._unless_stopped(self._replace_client)
            try:
                await self._ask(prompt)
            except ClientDead as exc:
                self._context.journal.write("error", where="engine", message=str(exc))
                self._completion.cause = "unavailable"

    async def _ask(self, prompt: Prompt) -> None:
        """Send a prompt where there is somebody to send it to, and a turn that still wants it."""
        client, control = self._client_lease.client, self._context.control
        if control.is_stopping:
            self._context.evidence.stopped_by = control.reason
        elif client is not None:
            await self._driver.ask(client, prompt)
            await self._turn_recall.sent()
            self._note_ending()

    async def _send_on(self) -> None:
        """Send the run on where it stopped short; each kind once."""
        language = self._context.language
        if needs_follow_through(self._context.evidence):
            self._context.notice("followed_skill")
            await self._ask_again(FOLLOW_SKILL_PROMPT[language])
        if needs_summary(self._context.evidence):
            self._gate.tools_forbidden = True
            self._context.notice("forced_summary")
            await self._summarise(SUMMARY_PROMPT[language])

    async def _summarise(self, text: str) -> None:
        """Ask for the summary; where that fails the run's own ending stands, and its outcomes."""
        evidence = self._context.evidence
        ending = evidence.finish
        await self._ask_again(text)
        if evidence.stopped_by not in {None, *SERVICE_FAILURES, "context_window"}:
            return
        failed = evidence.last_was_tool or evidence.model_gave_up or evidence.lost
        if failed or broke_off(evidence):
            evidence.keep_ending(ending)
        if failed:
            self._context.notice("summary_failed")

    async def _ask_again(self, text: str) -> None:
        try:
            await self._ask(
                Prompt(
                    text=text,
                    gatekeeper=self._gate,
                    call_own=self._case_calls,
                    calls_before=len(self._context.evidence.tools),
                )
            )
        except ClientDead as exc:
            self._context.evidence.finish = ClientLost(exit_code=None, stderr=(exc.detail,))
            self._note_ending()

    def _note_ending(self) -> None:
        finish = self._context.evidence.finish
        if isinstance(finish, RunFinished) and self._context.parts.charges:
            self._completion.cost_usd += finish.cost_usd
        elif isinstance(finish, ClientLost):
            self._context.journal.write("error", where="agent", lost=finish)

    async def _session_ready(self, ready: SessionReady) -> None:
        """Say where the model's memory is; a store that cannot be written is no reason to stop."""
        known = self._conversation
        if ready.session_id == known.session_id and known.fork_at is None:
            return
        self._conversation = replace(known, session_id=ready.session_id, fork_at=None)
        try:
            await self._context.parts.conversations.bind_session(known.id, ready.session_id)
        except StoreUnavailable:
            _log.exception("session_not_stored")

    def _first_text(self) -> None:
        taken = self._context.parts.now() - self._context.started_at
        self._completion.first_text_s = taken.total_seconds()

    async def _stop_when_time_is_over(self) -> None:
        await self._clock.wait_over()
        self._context.control.stop("timeout")

    async def _withdraw_questions_when_stopped(self) -> None:
        await self._context.control.wait_stop()
        self._context.parts.approvals.end_turn(self._context.turn.id)

    def _shown_denial(self, verdict: Deny) -> str:
        return self._context.sanitizer.text(describe_denial(verdict, self._context.language))

    def _write_permission(self, call: ToolCall, verdict: Allow | Deny) -> None:
        allowed = isinstance(verdict, Allow)
        told = self._context.chronicle.permission(
            allowed=allowed,
            index=call.index,
            tool_name=call.name,
            tool_use_id=call.tool_use_id,
            rule=verdict.rule,
            reason=self._context.sanitizer.text(verdict.reason),
            at=self._context.parts.now(),
        )
        self._context.journal.write(
            "permission",
            index=call.index,
            tool=call.name,
            tool_use_id=call.tool_use_id,
            input=call.input,
            verdict="allow" if allowed else "deny",
            rule=verdict.rule,
            reason=verdict.reason,
            runs=verdict.updated_input if isinstance(verdict, Allow) else None,
            **told,
        )
