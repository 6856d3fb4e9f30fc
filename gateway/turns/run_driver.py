"""Drive one prompt through the agent.

Events are emitted to readers and folded into evidence. To stop a run: ask the agent to stop, drain
to its result for a bounded time, then kill the process; the next turn resumes the session. A model
service that is silent, or keeps failing, for too long stops the turn: see `ServiceWatch`. The turn
is over when the agent has really stopped, not when it was asked to.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio

from gateway.conversations.outputs import CallId
from gateway.engine.events import (
    ClientLost,
    EngineEvent,
    MessageBegun,
    MessageEnded,
    ModelRetrying,
    RunFinished,
    SessionReady,
    SubagentAnswered,
    TextDone,
    ToolCalled,
    ToolReturned,
    WholeOutput,
)
from gateway.engine.protocol import AgentClient, AgentRun, ClientDead, Prompt
from gateway.turns.context import TurnContext
from gateway.turns.event_emitter import EventEmitter
from gateway.turns.evidence import SERVICE_FAILURES
from gateway.turns.reply import broke_off
from gateway.turns.sanitizer import OUTPUT_CHARS, off_loop
from policies.calls import ToolCall

NOTICE_S = 15.0
"""Silence is reported to the person after so long, or after half of the limit where that is
less."""


class ServiceWatch:
    """Watches the model's service over the runs of one turn."""

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self._limit_s = context.parts.limits.model_silence_s
        self._notice_s = min(NOTICE_S, self._limit_s / 2)
        self._noticed = False
        self._retry_at = 0.0
        self._failing_since: float | None = None

    def take(self, event: EngineEvent) -> None:
        """Note a failure or a success of the service; stop the turn when failures last too long."""
        if isinstance(event, TextDone | ToolCalled):
            self._failing_since = None
        elif isinstance(event, ModelRetrying):
            now = anyio.current_time()
            self._retry_at = now + event.delay_ms / 1000
            if self._failing_since is None:
                self._failing_since = now
            if self._retry_at - self._failing_since > self._limit_s:
                self._context.control.stop("api_error")

    async def watch(self, run: AgentRun) -> None:
        """Wait for a silence that is too long and stop the turn; cancel it when the
        run has ended.
        """
        silent_s = self._silent_s(run)
        while silent_s < self._limit_s:
            if silent_s >= self._notice_s and not self._noticed:
                self._noticed = True
                seconds, limit = f"{self._notice_s:g}", f"{self._limit_s:g}"
                self._context.notice("model_silent", seconds=seconds, limit=limit)
            threshold_s = self._limit_s if self._noticed else self._notice_s
            await anyio.sleep(threshold_s - silent_s)
            silent_s = self._silent_s(run)
        self._context.control.stop("model_timeout")

    def _silent_s(self, run: AgentRun) -> float:
        if self._context.evidence.has_open_calls:
            return 0.0
        return max(0.0, anyio.current_time() - max(run.silent_since, self._retry_at))


_GIVE_UP_GRACE_S = 2.0
"""A hopeless request must end within 5 seconds."""
_LOST_GRACE_S = 10.0
"""A killed agent's run ends at once; a run that does not is abandoned."""


class RunDriver:
    """Runs the prompts of one turn, one after another."""

    def __init__(
        self,
        context: TurnContext,
        emitter: EventEmitter,
        *,
        judge_unasked: Callable[[ToolCall], Awaitable[None]],
        on_session: Callable[[SessionReady], Awaitable[None]],
        on_sent: Callable[[], None],
    ) -> None:
        """Initialise.

        Args:
            context: The turn.
            emitter: Gets each event before it is in the evidence.
            judge_unasked: Judges a failed call that the agent program may not have asked about.
            on_session: Called when the agent's session is known.
            on_sent: Called each time the agent has a prompt.
        """
        self._context = context
        self._emitter = emitter
        self._run: AgentRun | None = None
        self._judge_unasked = judge_unasked
        self._calls: dict[int, ToolCalled] = {}
        self._unreadable: list[ToolReturned] = []
        self._service = ServiceWatch(context)
        self._on_session = on_session
        self._on_sent = on_sent
        self.is_idle = True
        """True if the client has no unfinished prompt."""

    async def ask(self, client: AgentClient, prompt: Prompt) -> None:
        """Send a prompt and process its events until the run has ended.

        Raises:
            ClientDead: the process had ended; nothing was sent.
        """
        evidence, control = self._context.evidence, self._context.control
        evidence.begin_run()
        self.is_idle = False
        try:
            await self._converse(client, prompt)
        except ClientDead:
            if not control.is_stopping:
                raise
            evidence.stopped_by = control.reason
            evidence.finish = ClientLost(exit_code=None)
        # An agent that broke off by itself is ending: it must not get the next prompt.
        broken = evidence.stopped_by is None and broke_off(evidence) and not evidence.model_gave_up
        self.is_idle = evidence.finish is not None and not evidence.lost and not broken

    async def _converse(self, client: AgentClient, prompt: Prompt) -> None:
        death: ClientDead | None = None
        self._run = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stop_when_told, client, tasks.cancel_scope)
            try:
                traced = replace(prompt, on_model_call=self._context.trace.model_called)
                self._run = await client.start_run(traced)
                self._on_sent()
                tasks.start_soon(self._service.watch, self._run)
                await self._read(client, self._run)
            except ClientDead as exc:  # raised below, outside of the task group's ExceptionGroup
                death = exc
            tasks.cancel_scope.cancel()
        if death is not None:
            raise death

    async def _read(self, client: AgentClient, run: AgentRun) -> None:
        """Process all events; if one cannot be processed, kill the agent and drain the run."""
        fault: Exception | None = None
        if self._context.control.is_stopping:  # asked to stop while the prompt was on its way
            await run.interrupt()
        async for event in run.events():
            if fault is not None:
                continue
            try:
                await self._take(event)
            except Exception as exc:  # noqa: BLE001  raised below, when the run has ended
                fault = exc
                await client.kill()
        if fault is not None:
            raise fault

    async def _stop_when_told(self, client: AgentClient, reading: anyio.CancelScope) -> None:
        context = self._context
        await context.control.wait_stop()
        context.parts.approvals.end_turn(
            context.turn.id, is_waiting=context.control.keeps_questions
        )
        if context.evidence.finish is not None:
            return  # the run had ended by then
        context.evidence.stopped_by = context.control.reason
        if self._run is not None:
            await self._run.interrupt()
        hopeless = context.control.reason in {*SERVICE_FAILURES, "context_window"}
        await anyio.sleep(_GIVE_UP_GRACE_S if hopeless else context.parts.limits.interrupt_grace_s)
        context.parts.metrics.clients_killed_total.inc()
        if not hopeless:
            context.notice("kill")
        await client.kill()
        await anyio.sleep(_LOST_GRACE_S)
        context.evidence.finish = ClientLost(exit_code=None)
        reading.cancel()

    async def _take(self, event: EngineEvent) -> None:
        """Process an event; the result of an unreadable call waits for the reason why its message
        ended.
        """
        call = self._calls.get(event.index or 0) if isinstance(event, ToolReturned) else None
        if call is not None and call.is_unreadable and isinstance(event, ToolReturned):
            self._unreadable.append(event)
            return
        if isinstance(event, MessageBegun | RunFinished | ClientLost):
            await self._take_unreadable()
        await self._take_now(event)
        if isinstance(event, MessageEnded):
            await self._take_unreadable()

    async def _take_unreadable(self) -> None:
        """Process the results of calls whose input was no JSON, in the gateway's own words."""
        waiting, self._unreadable = self._unreadable, []
        is_cut = self._context.evidence.model_stop == "max_tokens"
        text = self._context.say("call_too_long" if is_cut else "call_unreadable")
        for event in waiting:
            await self._take_now(replace(event, text=text) if event.is_error else event)

    async def _take_now(self, event: EngineEvent) -> None:
        evidence = self._context.evidence
        if self._context.control.is_stopping:
            evidence.stopped_by = self._context.control.reason
        if isinstance(event, SessionReady):
            await self._on_session(event)
        if isinstance(event, ToolCalled):
            self._calls[event.index] = event
        if isinstance(event, ToolReturned):
            event = await self._clipped(event)
            await self._judge_if_unasked(event)
        self._service.take(event)
        await self._emitter.emit(event)
        evidence.take(event, anyio.current_time())
        if isinstance(event, SubagentAnswered):
            self._count_steps()
        if isinstance(event, ToolReturned):
            use = evidence.tools.get(event.index or 0)
            if use is not None:
                await self._emitter.tool_finished(use)

    def _count_steps(self) -> None:
        """Stop a turn whose agents together asked the model too often; the agent program counts
        each of them by itself.
        """
        evidence, limit = self._context.evidence, self._context.parts.limits.agent_steps
        if evidence.main_answers + len(evidence.subagent_answers) > limit:
            self._context.control.stop("max_turns")

    async def _clipped(self, event: ToolReturned) -> ToolReturned:
        """Return a result as it is shown; if that is a part of it, the whole is kept beside."""
        whole = event.whole or WholeOutput(text=event.text, chars=len(event.text))
        if event.index is not None and len(whole.text) > OUTPUT_CHARS:
            turn = self._context.turn
            call = CallId(turn.conversation_id, turn.id, event.index)
            self._context.parts.outputs.put(
                call, whole.text, whole.chars, self._context.sanitizer.streamed
            )
        text = await off_loop(self._context.sanitizer.clipped, event.text)
        return replace(event, text=text, whole=replace(whole, text=""))

    async def _judge_if_unasked(self, event: ToolReturned) -> None:
        call = self._calls.get(event.index or 0)
        if call is None or not event.is_error:
            return
        await self._judge_unasked(
            ToolCall(
                name=call.name,
                input=call.input,
                cwd=str(self._context.workspace.root),
                tool_use_id=call.tool_use_id,
                index=call.index,
            )
        )
