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
from gateway.turns.asking import PersonAsker
from gateway.turns.casetools import CaseCalls
from gateway.turns.closing import Closing
from gateway.turns.control import TurnClock
from gateway.turns.conversing import Conversing
from gateway.turns.denial_reasons import describe_denial
from gateway.turns.evidence import SERVICE_FAILURES
from gateway.turns.gate import TurnGate
from gateway.turns.guards import DoomLoop, needs_follow_through, needs_summary
from gateway.turns.loan import Loan
from gateway.turns.narrator import Narrator
from gateway.turns.recalling import Recalling
from gateway.turns.reply import broke_off
from gateway.turns.scene import Scene
from gateway.turns.sentences import FOLLOW_SKILL_PROMPT, SUMMARY_PROMPT
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

    def __init__(self, scene: Scene, conversation: Conversation) -> None:
        limits = scene.parts.limits
        self._scene = scene
        self._conversation = conversation
        self._prompt_text = scene.turn.message
        self._clock = TurnClock(limits.timeout_s)
        self._recalling = Recalling(scene)
        self._loan = Loan(scene)
        self._closing = Closing(scene)
        self._narrator = Narrator(scene, DoomLoop(limits.doom_loop_threshold))
        self._narrator.on_first_text = self._first_text
        cases = scene.parts.memory.cases
        self._case_calls = (
            CaseCalls(cases, conversation, scene.parts.memory.tools)
            if cases is not None and conversation.uses_cases
            else None
        )
        self._gate = TurnGate(
            policy=scene.parts.policy,
            evidence=scene.evidence,
            control=scene.control,
            clock=self._clock,
            doom_loop=DoomLoop(limits.doom_loop_threshold),
            asker=PersonAsker(scene) if scene.parts.ask_changes else None,
            ask_changes=scene.parts.ask_changes,
            write_down=self._write_permission,
            show=self._shown_denial,
        )
        self._conversing = Conversing(scene, self._narrator, self._gate.judge_unasked)
        self._conversing.on_session = self._session_ready
        self._sent = anyio.Event()
        self._conversing.on_sent = self._sent.set

    async def perform(self) -> None:
        """Do everything, from the first event to the last."""
        try:
            await self._run()
        except Exception:  # noqa: BLE001  told in the result
            _log.exception("turn_failed")
            self._closing.cause = "internal"
        self._recalling.settle()
        for use in self._scene.evidence.settle(self._scene.parts.now()):
            self._narrator.tool_finished(use)
        await self._closing.close(self._recalling.fields, self._conversation.session_id)

    async def _run(self) -> None:
        scene = self._scene
        answer = await self._read_command()
        told = scene.chronicle.received(self._conversation, scene.started_at)
        scene.journal.write(
            "request",
            message=scene.turn.message,
            user_id=scene.turn.user_id,
            **({} if self._prompt_text == scene.turn.message else {"prompt": self._prompt_text}),
            **told,
        )
        if scene.turn.state == "queued":
            scene.events.emit(
                "turn.started", model=scene.evidence.model, log_file=scene.journal.log_file
            )
            await scene.parts.turns.start(scene.turn.id, scene.started_at)
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
        scene = self._scene
        if not looks_typed(scene.turn.message):
            return None
        skills = await anyio.to_thread.run_sync(list_skills_blocking, Path(scene.parts.workspace))
        match read_command(scene.turn.message, skills):
            case SkillRequest(name, words):
                asked = scene.say("skill_request", name=name)
                self._prompt_text = f"{asked}\n\n{words}" if words else asked
            case GatewayAnswer(key, name):
                shown = ", ".join(f"/{one}" for one in skills)
                scene.evidence.model = ""
                return scene.say(key, name=name, skills=shown or "–")
            case None:
                pass
        return None

    async def _answer(self, text: str) -> None:
        """Answer without the agent, and say so."""
        scene = self._scene
        scene.notice("answered_by_gateway")
        for event in (
            TextDone(text=text),
            RunFinished(subtype="success", is_error=False, result=text, stop_reason="end_turn"),
        ):
            await self._narrator.tell(event)
            scene.evidence.take(event, scene.parts.now())

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
                await self._loan.give_back(is_idle=self._conversing.is_idle)

    async def _recall(self) -> None:
        try:
            await self._unless_stopped(self._ask_memory)
        finally:
            self._recalling.settle()

    async def _ask_memory(self) -> None:
        """Ask while the client is got; one that is there gets the prompt first."""
        if self._scene.parts.pool.is_hot(self._conversation.id):
            await self._sent.wait()
        await self._recalling.ask(self._conversation)

    async def _take_client(self) -> None:
        if not await self._loan.take(self._conversation):
            self._closing.cause = self._loan.refusal

    async def _replace_client(self) -> None:
        self._conversing.is_idle = True
        if not await self._loan.replace(self._conversation):
            self._closing.cause = self._loan.refusal

    async def _unless_stopped(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do a part of the work that has nothing to drain: a stop cancels it."""
        async with anyio.create_task_group() as tasks:

            async def cancel_when_stopped() -> None:
                await self._scene.control.wait_stop()
                tasks.cancel_scope.cancel()

            tasks.start_soon(cancel_when_stopped)
            if not self._scene.control.is_stopping:
                await work()
            tasks.cancel_scope.cancel()

    async def _ask_first(self) -> None:
        """Send the person's message; once more to a new client where the first had just died."""
        prompt = Prompt(
            text=self._prompt_text,
            context=self._recalling.context,
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
                self._scene.journal.write("error", where="engine", message=str(exc))
                self._closing.cause = "unavailable"

    async def _ask(self, prompt: Prompt) -> None:
        """Send a prompt where there is somebody to send it to, and a turn that still wants it."""
        client, control = self._loan.client, self._scene.control
        if control.is_stopping:
            self._scene.evidence.stopped_by = control.reason
        elif client is not None:
            await self._conversing.ask(client, prompt)
            await self._recalling.sent()
            self._note_ending()

    async def _send_on(self) -> None:
        """Send the run on where it stopped short; each kind once."""
        language = self._scene.language
        if needs_follow_through(self._scene.evidence):
            self._scene.notice("followed_skill")
            await self._ask_again(FOLLOW_SKILL_PROMPT[language])
        if needs_summary(self._scene.evidence):
            self._gate.tools_forbidden = True
            self._scene.notice("forced_summary")
            await self._summarise(SUMMARY_PROMPT[language])

    async def _summarise(self, text: str) -> None:
        """Ask for the summary; where that fails the run's own ending stands, and its outcomes."""
        evidence = self._scene.evidence
        ending = evidence.finish
        await self._ask_again(text)
        if evidence.stopped_by not in {None, *SERVICE_FAILURES, "context_window"}:
            return
        failed = evidence.last_was_tool or evidence.model_gave_up or evidence.lost
        if failed or broke_off(evidence):
            evidence.keep_ending(ending)
        if failed:
            self._scene.notice("summary_failed")

    async def _ask_again(self, text: str) -> None:
        try:
            await self._ask(
                Prompt(
                    text=text,
                    gatekeeper=self._gate,
                    call_own=self._case_calls,
                    calls_before=len(self._scene.evidence.tools),
                )
            )
        except ClientDead as exc:
            self._scene.evidence.finish = ClientLost(exit_code=None, stderr=(exc.detail,))
            self._note_ending()

    def _note_ending(self) -> None:
        finish = self._scene.evidence.finish
        if isinstance(finish, RunFinished) and self._scene.parts.charges:
            self._closing.cost_usd += finish.cost_usd
        elif isinstance(finish, ClientLost):
            self._scene.journal.write("error", where="agent", lost=finish)

    async def _session_ready(self, ready: SessionReady) -> None:
        """Say where the model's memory is; a store that cannot be written is no reason to stop."""
        known = self._conversation
        if ready.session_id == known.session_id and known.fork_at is None:
            return
        self._conversation = replace(known, session_id=ready.session_id, fork_at=None)
        try:
            await self._scene.parts.conversations.bind_session(known.id, ready.session_id)
        except StoreUnavailable:
            _log.exception("session_not_stored")

    def _first_text(self) -> None:
        taken = self._scene.parts.now() - self._scene.started_at
        self._closing.first_text_s = taken.total_seconds()

    async def _stop_when_time_is_over(self) -> None:
        await self._clock.wait_over()
        self._scene.control.stop("timeout")

    async def _withdraw_questions_when_stopped(self) -> None:
        await self._scene.control.wait_stop()
        self._scene.parts.approvals.end_turn(self._scene.turn.id)

    def _shown_denial(self, verdict: Deny) -> str:
        return self._scene.teller.text(describe_denial(verdict, self._scene.language))

    def _write_permission(self, call: ToolCall, verdict: Allow | Deny) -> None:
        allowed = isinstance(verdict, Allow)
        told = self._scene.chronicle.permission(
            allowed=allowed,
            index=call.index,
            tool_name=call.name,
            tool_use_id=call.tool_use_id,
            rule=verdict.rule,
            reason=self._scene.teller.text(verdict.reason),
            at=self._scene.parts.now(),
        )
        self._scene.journal.write(
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
