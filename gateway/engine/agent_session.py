"""What an agent's messages say about its session: its id, mode and cost, and the
run in progress.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from claude_agent_sdk import (
    Message,
    PermissionMode,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    UserMessage,
)

from gateway.engine.events import (
    ClientLost,
    Observed,
    RunFinished,
    SessionReady,
    ToolCalled,
    ToolOutput,
    ToolReturned,
)
from gateway.engine.hooks import RunHooks
from gateway.engine.message_filter import MessageFilter
from gateway.engine.protocol import Prompt
from gateway.engine.runs import SdkRun
from gateway.engine.translate import translate
from gateway.relay.reports import ServiceReport

_log = logging.getLogger(__name__)


class AgentSession:
    """The session of one client; it has at most one run at a time."""

    def __init__(self, hooks: RunHooks) -> None:
        self.id: str | None = None
        """None before the first run has begun."""
        self.run: SdkRun | None = None
        self.mode: PermissionMode = "default"
        self.on_unsolicited: Callable[[Message], None] = _set_aside
        """Called with each message that belongs to no run."""
        self._hooks = hooks
        self._filter = MessageFilter()
        self._cost_usd = 0.0
        self._is_command = False

    def leave(self) -> str:
        """Forget the session so far, of which nothing is left, and return its id."""
        session_id, self.id = self.id, None
        return session_id or ""

    def note_compacting(self, is_compacting: bool) -> None:  # noqa: FBT001  a callback's only value
        """Note that the agent program begins or ends to summarise the session."""
        self._hooks.is_compacting = is_compacting

    def count_cost_from(self, spent_usd: float) -> None:
        """Set the session's cost before this client; the agent program continues from it."""
        self._cost_usd = spent_usd

    def report_service(self, report: ServiceReport) -> None:
        """Pass on what the relay saw of the model's service."""
        if self.run is not None:
            self.run.hear_service(report)

    def hear_output(self, text: str) -> None:
        """Pass on what the command that runs has written."""
        index = None if self.run is None else self.run.calls.running_command
        if self.run is not None and index is not None:
            self.run.queue.put(ToolOutput(index=index, text=text))

    def begin(self, run: SdkRun, prompt: Prompt) -> None:
        """Pass the messages that follow to a run."""
        self.run = run
        self._is_command = prompt.is_command
        self._filter.begin(run.uuid)
        self._hooks.begin(prompt, run.calls)

    def interrupt(self) -> None:
        """Expect the messages of an interrupted run."""
        self._filter.interrupt()

    def end(self, run: SdkRun) -> None:
        """Pass no more messages to a run. Idempotent."""
        if self.run is run:
            self.run = None
            self._filter.end()
            self._hooks.end()

    def lose_run(self, exit_code: int | None, stderr: Sequence[str]) -> None:
        """End the run in progress, if any, because the agent has ended."""
        if (run := self.run) is not None:
            self.end(run)
            run.queue.put(ClientLost(exit_code=exit_code, stderr=stderr))

    def may_leave_commands(self, message: Message) -> bool:
        """Return whether a command may still run that changes something, although its end is
        reported.

        The agent program reports a call that took too long, or was interrupted, before it ends the
        command.
        """
        if self.run is None or not isinstance(message, UserMessage | ResultMessage):
            return False
        return self.run.calls.is_changing and any(
            isinstance(event, RunFinished) or (isinstance(event, ToolReturned) and event.is_error)
            for event in translate(message)
        )

    def deliver(self, message: Message) -> None:
        """Take the next message of the agent; word that its screen is to be drawn anew is none."""
        if isinstance(message, SystemMessage):
            if message.subtype == "ui_invalidate":
                return
            self.mode = message.data.get("permissionMode", self.mode)
        self._hear(message)

    def _hear(self, message: Message) -> None:
        run = self.run
        solicited = self._filter.is_solicited(message)
        if run is not None:
            run.hear(message)
        if run is not None and not isinstance(message, StreamEvent):
            # A piece is not recorded: the whole message follows, and secrets are not recognised in
            # pieces.
            run.queue.put(Observed(message=message, solicited=solicited))
        if run is None or not solicited:
            self.on_unsolicited(message)
            return
        for event in translate(message):
            match event:
                case ToolCalled():
                    run.calls.stream(event)
                case ToolReturned():
                    run.queue.put(run.calls.take_result(event))
                case RunFinished():
                    self.id = event.session_id or self.id
                    self.end(run)
                    denied = run.calls.denied_by_agent(getattr(message, "permission_denials", None))
                    result = None if self._is_command else event.result  # its own words, no answer
                    cost_usd = self._own_cost(event.cost_usd)
                    run.queue.put(
                        replace(event, denied_calls=denied, result=result, cost_usd=cost_usd)
                    )
                case _:
                    if isinstance(event, SessionReady):
                        self.id = event.session_id
                    run.queue.put(event)

    def _own_cost(self, total: float) -> float:
        """Return the run's own cost: the agent program reports the cost of the whole session so
        far.
        """
        before = self._cost_usd if total >= self._cost_usd else 0.0  # it counts from zero again
        self._cost_usd = total
        return total - before


def _set_aside(message: Message) -> None:
    _log.debug("unsolicited_message", extra={"kind": type(message).__name__})
