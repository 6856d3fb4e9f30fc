"""Run a turn from its queue to its stored result.

    started → client → the prompt → guards → result → published
                         memory ↗

A turn that a crash finds queued was never sent and may run again: its prompt waits until the start
is stored. The prompt of a turn that starts at once waits neither for that nor for memory, but the
model does: the hook that the agent calls before it asks the model answers when both are there. If
the turn cannot be stored the hook blocks the prompt, its client is ended, and the turn leaves no
result. Whatever happens in between, the turn ends with exactly one result, made from evidence.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

import anyio

from gateway.conversations.model import Conversation, Turn
from gateway.engine.events import ClientLost, RunFinished, SessionReady, TextDone
from gateway.engine.protocol import ClientDead, Prompt
from gateway.errors import WorkspaceUnavailable
from gateway.journal.files import log_file_name
from gateway.turns.approval_request import ApprovalRequester
from gateway.turns.client_lease import ClientLease, client_of, own_calls
from gateway.turns.compaction import compaction_prompt, tell_compaction
from gateway.turns.completion import TurnCompletion
from gateway.turns.context import TurnContext, TurnLimits, TurnParts
from gateway.turns.control import TurnClock
from gateway.turns.event_emitter import EventEmitter
from gateway.turns.evidence import SERVICE_FAILURES, Evidence
from gateway.turns.gate import TurnGate
from gateway.turns.guards import DoomLoop, needs_follow_through, needs_summary, skills_read
from gateway.turns.healing import history_refused, with_summary
from gateway.turns.lanes import Ticket
from gateway.turns.permission_record import write_permission
from gateway.turns.pictures import read_pictures, refuse_picture, tell_left_out
from gateway.turns.reply import broke_off
from gateway.turns.result import scheduled_fields
from gateway.turns.run_driver import RunDriver
from gateway.turns.sanitizer import OutputSanitizer
from gateway.turns.sentences import PROMPTS, describe_denial
from gateway.turns.turn_recall import TurnRecall
from gateway.turns.typed_commands import (
    CompactRequest,
    GatewayAnswer,
    PlanRequest,
    SkillRequest,
    looks_typed,
    read_command,
)
from gateway.turns.workspaces import OpenWorkspace
from memory.errors import StoreDamaged, StoreUnavailable
from policies.verdict import Deny

__all__ = ["TurnLimits", "TurnParts", "TurnRunner", "TurnWork"]

_READ_AGAIN_S: Final = 1.0
_log = logging.getLogger(__name__)


class TurnRunner:
    """Runs turns; many at once, one per conversation."""

    def __init__(self, parts: TurnParts) -> None:
        self._parts = parts

    async def run(self, ticket: Ticket) -> None:
        """Run a turn to its stored result; do nothing if its conversation was deleted."""
        parts, turn = self._parts, ticket.turn
        prepared = await self._prepare(ticket)
        if prepared is None:
            return
        conversation, workspace = prepared
        context = TurnContext(
            parts=parts,
            turn=turn,
            conversation=conversation,
            workspace=workspace,
            events=ticket.events,
            control=ticket.control,
            sanitizer=OutputSanitizer(workspace.paths, parts.mask),
            evidence=Evidence(model=self._model_of(conversation)),
            started_at=turn.started_at or parts.now(),
            trace=ticket.trace,
        )
        await TurnWork(context).perform()
        await parts.worktrees.take_in(workspace, conversation)

    async def _prepare(self, ticket: Ticket) -> tuple[Conversation, OpenWorkspace] | None:
        """Return the conversation of a turn and where it works; None if it was deleted or is
        damaged, or another server or the next start has the turn.

        While the database cannot be read, the turn waits: nobody else would begin it.
        """
        while ticket.control.reason != "shutdown":
            try:
                return await self._opened(ticket)
            except StoreDamaged:  # waiting does not help
                _log.exception("turn_not_begun", extra={"turn_id": ticket.turn.id})
                return None
            except StoreUnavailable:
                _log.warning("turn_waits_for_the_database", extra={"turn_id": ticket.turn.id})
                await anyio.sleep(_READ_AGAIN_S)
        return None

    async def _opened(self, ticket: Ticket) -> tuple[Conversation, OpenWorkspace] | None:
        parts, turn = self._parts, ticket.turn
        conversation = ticket.conversation or await parts.conversations.get(
            turn.conversation_id, turn.user_id
        )
        if conversation is None:
            return None
        try:
            workspace = await parts.worktrees.open(conversation)
            await parts.worktrees.bring(workspace, turn)
        except Exception as exc:
            if isinstance(exc, StoreUnavailable) and not isinstance(exc, StoreDamaged):
                raise
            because = str(exc.__cause__ or exc)
            if not isinstance(exc, WorkspaceUnavailable):  # that was logged
                _log.exception("workspace_not_opened", extra={"turn_id": turn.id})
                because = type(exc).__name__
            workspace = await parts.workspaces.open_empty(turn.user_id, because)
        return conversation, workspace

    def started_fields(self, turn: Turn, conversation: Conversation) -> dict[str, Any]:
        """Return the fields of `turn.started` for a turn that starts at its `started_at`."""
        log_file = log_file_name(turn.id, turn.started_at or self._parts.now())
        return {"model": self._model_of(conversation), "log_file": log_file}

    def wake(self, conversation: Conversation) -> None:
        """Start the agent of a conversation that somebody opened; a fork has no session of
        its own yet, and a workspace that is not open has to be prepared first.
        """
        workspace = self._parts.worktrees.known(conversation)
        is_resumed = conversation.session_id is not None and conversation.fork_at is None
        if workspace is not None and is_resumed:
            self._parts.pool.wake(*client_of(self._parts, conversation, workspace))

    def _model_of(self, conversation: Conversation) -> str:
        return conversation.model or self._parts.default_model or ""


class TurnWork:
    """The steps of one turn; `perform` it once."""

    def __init__(self, context: TurnContext) -> None:
        parts, limits = context.parts, context.parts.limits
        self._context = context
        self._conversation = context.conversation
        self._prompt_text = context.turn.message
        self._plan_first = False
        self._compact_words: str | None = None
        """Not None: the turn has the conversation summarised, and keeps what these words say."""
        self._pictures: Sequence[Mapping[str, Any]] = ()
        self._clock = TurnClock(limits.timeout_s)
        self._turn_recall = TurnRecall(context)
        self._client_lease = ClientLease(context)
        self._completion = TurnCompletion(context)
        self._emitter = EventEmitter(context, DoomLoop(limits.doom_loop_threshold))
        self._approvals = ApprovalRequester(context)
        self._own_calls = own_calls(context)
        self._gate = TurnGate(
            policy=context.workspace.policy,
            lock=context.workspace.lock,
            evidence=context.evidence,
            control=context.control,
            clock=self._clock,
            doom_loop=DoomLoop(limits.doom_loop_threshold),
            asker=self._approvals if parts.ask_changes else None,
            ask_changes=parts.ask_changes,
            write_permission=partial(write_permission, context),
            before_call=context.file_changes.note,
            refuse=partial(refuse_picture, context),
            describe=self._describe_denial,
        )
        self._sent, self._taken = anyio.Event(), anyio.Event()
        self._driver = RunDriver(
            context,
            self._emitter,
            judge_unasked=self._gate.judge_unasked,
            on_session=self._session_ready,
            on_sent=self._sent.set,
        )

    async def perform(self) -> None:
        """Run the turn from its first event to its last."""
        try:
            await self._run()
        except Exception:  # noqa: BLE001  reported in the result
            _log.exception("turn_failed")
            self._completion.cause = "internal"
        self._turn_recall.settle()
        if not await self._context.events.wait_decided():
            await self._completion.abandon()
            return
        for use in self._context.evidence.settle(anyio.current_time()):
            await self._emitter.tool_finished(use)
        self._context.parts.outputs.end_turn(self._context.turn.id)
        self._completion.first_text_s = self._emitter.first_text_s
        await self._completion.close(self._turn_recall.fields, self._conversation.session_id)

    async def _run(self) -> None:
        context = self._context
        answer = await self._read_command()
        named, self._pictures = await read_pictures(context)
        noted = await context.chronicle.received(self._conversation, context.started_at)
        scheduled = scheduled_fields(context.turn)
        context.journal.write(
            "request",
            message=context.turn.message,
            user_id=context.turn.user_id,
            memory=context.chronicle.state,
            **({} if self._prompt_text == context.turn.message else {"prompt": self._prompt_text}),
            **({"pictures": named} if named else {}),
            **({"trace_id": context.trace.id} if context.trace.id else {}),
            **({"schedule": scheduled} if scheduled is not None else {}),
            **noted,
        )
        if context.turn.state == "queued":
            context.events.emit(
                "turn.started", model=context.evidence.model, log_file=context.journal.log_file
            )
            await context.parts.turns.start(
                context.turn.id, context.started_at, epoch=context.events.epoch
            )
        if scheduled is not None and scheduled["missed"]:
            context.notice("runs_missed", count=scheduled["missed"])
        for picture in named:
            if "left_out" in picture:
                tell_left_out(context, picture["path"], picture["left_out"])
        if answer is not None:
            await self._answer(answer)
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stop_on_timeout)
            await self._converse()
            tasks.cancel_scope.cancel()

    async def _read_command(self) -> str | None:
        """Return the gateway's own answer to a typed command, or None.

        A request for a skill or a plan becomes the prompt instead.
        """
        context = self._context
        if context.turn.approval_id is not None:
            self._prompt_text = await self._approvals.take_grant(context.turn.approval_id)
            return None
        if not looks_typed(context.turn.message):
            return None
        skills = await anyio.to_thread.run_sync(context.workspace.skills.typed_blocking)
        match read_command(context.turn.message, skills):
            case SkillRequest(name, words):
                request = context.say("skill_request", name=name)
                self._prompt_text = f"{request}\n\n{words}" if words else request
            case CompactRequest() if self._conversation.session_id is None:
                context.evidence.model = ""
                return context.say("command_compact_empty")
            case CompactRequest(words):
                self._compact_words = words
            case PlanRequest() if not context.parts.ask_changes:
                context.evidence.model = ""
                return context.say("command_plan_off")
            case PlanRequest(words):
                request, self._plan_first = context.say("plan_request"), True
                self._prompt_text = f"{request}\n\n{words}"
            case GatewayAnswer(key, name, meant):
                shown = ", ".join(f"/{skill}" for skill in skills)
                context.evidence.model = ""
                return context.say(key, name=name, meant=meant, skills=shown or "–")
            case None:
                pass
        return None

    async def _answer(self, text: str) -> None:
        """Answer without the agent, and report that."""
        self._context.notice("answered_by_gateway")
        for event in (
            TextDone(text=text),
            RunFinished(subtype="success", is_error=False, result=text, stop_reason="end_turn"),
        ):
            await self._emitter.emit(event)
            self._context.evidence.take(event, anyio.current_time())

    async def _converse(self) -> None:
        unless_stopped = self._context.control.run_unless_stopped
        try:
            async with anyio.create_task_group() as beside:
                if self._compact_words is None:
                    beside.start_soon(self._recall)
                await unless_stopped(self._take_client)
                await self._ask_first()
                beside.cancel_scope.cancel()
            if self._compact_words is not None:
                await tell_compaction(self._context, self._emitter)
            await self._continue()
        finally:
            with anyio.CancelScope(shield=True):
                is_idle = self._driver.is_idle and not self._context.events.is_refused
                try:
                    await self._client_lease.give_back(is_idle=is_idle)
                finally:
                    self._gate.end_run()

    async def _recall(self) -> None:
        try:
            await self._context.control.run_unless_stopped(self._ask_memory)
        finally:
            self._turn_recall.settle()

    async def _ask_memory(self) -> None:
        """Ask while the client is taken; a live client gets the prompt first."""
        if self._context.parts.pool.is_hot(self._conversation.id):
            await self._sent.wait()
        await self._turn_recall.ask(self._conversation)
        await self._taken.wait()
        if self._client_lease.is_session_lost:  # what was shown in it is gone as well
            await self._turn_recall.ask(replace(self._conversation, session_id=None))

    async def _take_client(self) -> None:
        try:
            self._completion.cause = await self._client_lease.take(self._conversation)
        finally:
            self._taken.set()

    async def _replace_client(self) -> None:
        self._driver.is_idle = True
        self._completion.cause = await self._client_lease.replace(self._conversation)

    async def _first_prompt(self) -> Prompt:
        if self._compact_words is not None:
            self._gate.tools_forbidden = True
            await self._context.events.wait_decided()  # no hook holds this prompt back
            return compaction_prompt(self._compact_words, self._gate, self._context.events)
        return Prompt(
            text=self._prompt_text,
            context=self._turn_recall.wait_text,
            gatekeeper=self._gate,
            owner=self._context.events,
            call_own=self._own_calls,
            plan_first=self._plan_first,
            pictures=self._pictures,
        )

    async def _ask_first(self) -> None:
        """Send the person's message; if the client had just died, once more to a new one."""
        prompt = await self._first_prompt()
        try:
            await self._ask(prompt)
        except ClientDead:
            await self._context.control.run_unless_stopped(self._replace_client)
            try:
                await self._ask(prompt)
            except ClientDead as exc:
                self._context.journal.write("error", where="engine", message=str(exc))
                self._completion.cause = "unavailable"
        if history_refused(self._context.evidence, self._conversation):
            await self._ask_in_new_session(prompt)

    async def _ask_in_new_session(self, prompt: Prompt) -> None:
        """Ask once more in a new session; keep the old one if the service refuses that too."""
        context, old = self._context, self._conversation
        summarised = await with_summary(prompt, context)
        self._conversation = replace(old, session_id=None)
        cause = await self._client_lease.renew(self._conversation)
        self._driver.is_idle = True
        if cause is None and not prompt.is_command:
            with suppress(ClientDead):
                await self._ask(summarised)
        if context.evidence.text or context.evidence.tools:
            context.notice("session_renewed")
            return
        self._conversation, self._driver.is_idle = old, False
        context.evidence.last_entry_id = None
        await self._bind_session(old.session_id)

    async def _ask(self, prompt: Prompt) -> None:
        """Send a prompt, if there is a client and the turn is not being stopped."""
        client, control = self._client_lease.client, self._context.control
        if control.is_stopping:
            self._context.evidence.stopped_by = control.reason
        elif client is not None:
            await self._driver.ask(client, prompt)
            if self._driver.is_idle:
                self._gate.end_run()
            await self._turn_recall.mark_sent()
            self._note_ending()

    async def _continue(self) -> None:
        """Continue a run that stopped short: after a skill, and for a summary; each once."""
        language = self._context.language
        if needs_follow_through(self._context.evidence) and await self._is_approved_skill():
            self._context.notice("followed_skill")
            await self._ask_again(PROMPTS[language]["follow_skill"])
        if needs_summary(self._context.evidence):
            self._gate.tools_forbidden = True
            self._context.notice("forced_summary")
            await self._summarise(PROMPTS[language]["summary"])

    async def _is_approved_skill(self) -> bool:
        """Return whether the instructions that were read last are a skill that agents are given."""
        last = self._context.evidence.last_tool
        skills = self._context.workspace.skills
        names = await anyio.to_thread.run_sync(skills.typed_blocking)
        return last is not None and skills_read(last) <= set(names)

    async def _summarise(self, text: str) -> None:
        """Ask for the summary; if that fails, restore the run's own ending."""
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
        prompt = Prompt(
            text=text,
            gatekeeper=self._gate,
            owner=self._context.events,
            call_own=self._own_calls,
            calls_before=len(self._context.evidence.tools),
            has_tools=not self._gate.tools_forbidden,
        )
        try:
            await self._ask(prompt)
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
        """Store the agent's session id; a store that cannot be written does not stop the turn."""
        known = self._conversation
        if ready.session_id == known.session_id and known.fork_at is None:
            return
        self._conversation = replace(known, session_id=ready.session_id, fork_at=None)
        if not await self._context.events.wait_decided():  # a new conversation is stored by then
            return
        try:
            await self._bind_session(ready.session_id)
        except StoreUnavailable:
            _log.exception("session_not_stored")

    async def _bind_session(self, session_id: str | None) -> None:
        context = self._context
        await context.parts.conversations.bind_session(
            self._conversation.id, session_id, epoch=context.events.epoch
        )

    async def _stop_on_timeout(self) -> None:
        await self._clock.wait_over()
        self._context.control.stop("timeout")

    def _describe_denial(self, verdict: Deny) -> str:
        return self._context.sanitizer.text(describe_denial(verdict, self._context.language))
