"""Evidence of what a turn did: engine events folded into one value.

The turn result is made from this alone. Text counts once: the finished blocks of the assistant's
messages, and the pieces of a block that never finished.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.engine.events import (
    ClientLost,
    EngineEvent,
    EntryRecorded,
    MessageBegun,
    MessageEnded,
    ModelFailed,
    ModelRetrying,
    RunFinished,
    ServiceFailed,
    SessionReady,
    SubagentAnswered,
    Summarised,
    TextDelta,
    TextDone,
    ThinkingDelta,
    ToolCalled,
    ToolReturned,
)
from gateway.relay.reports import ServiceReport
from gateway.turns.file_changes import NO_CHANGES
from gateway.turns.steps import Steps

ToolStatus = Literal["ok", "failed", "denied", "interrupted", "unknown"]

StopReason = Literal[
    "end_turn",
    "user_interrupt",
    "policy_interrupt",
    "doom_loop",
    "max_turns",
    "timeout",
    "budget",
    "api_error",
    "engine_crash",
    "refusal",
    "model_timeout",
    "context_window",
    "waiting",
    "shutdown",
]

SERVICE_FAILURES: frozenset[StopReason | None] = frozenset({"api_error", "model_timeout"})
"""Stops because the model's service failed."""

_MAY_COME_LATE: frozenset[StopReason | None] = frozenset(
    {"user_interrupt", "shutdown", "timeout", *SERVICE_FAILURES}
)
"""Stops that do not count if the run had ended by itself before they reached it."""
_BY_ITSELF = frozenset({None, "completed"})
_TOO_LONG = frozenset({"prompt_too_long", "blocking_limit"})
"""Terminal reasons of the agent program: the prompt does not fit into the context window."""
_TOKENS = (
    *("input_tokens", "output_tokens"),
    *("cache_creation_input_tokens", "cache_read_input_tokens"),
)
_REQUEST_TOO_LARGE = 413
_CONTEXT_FULL = "model_context_window_exceeded"
_ORDINARY_STOPS = frozenset(
    {None, "end_turn", "tool_use", "stop_sequence", "max_tokens", "refusal", _CONTEXT_FULL}
)


@dataclass(slots=True, kw_only=True)
class ToolUse:
    """One tool call and its result."""

    index: int
    """The call's number in the turn, from 1; it identifies the call, `tool_use_id` may repeat."""
    tool_use_id: str
    name: str
    input: Mapping[str, Any]
    """Sanitized: masked, clipped, paths relative to the workspace."""
    summary: str
    started_s: float
    """When it began, by a monotonic clock; a call that stands behind others begins after them."""
    waited_s: float = 0.0
    """How long it waited for a person."""
    ran: Mapping[str, Any] | None = None
    """The fields of its input that the gate replaced before it ran, sanitized; None if none."""
    status: ToolStatus | None = None
    """None until it has returned."""
    has_begun: bool = True
    """False if it was interrupted before the gate let it pass, so that it did not run."""
    error: str | None = None
    output: str = ""
    output_chars: int | None = None
    """The true length of what it returned; None if nobody knows it, or it did not run."""
    duration_ms: int | None = None
    allowed_by: Mapping[str, Any] | None = None
    """The person's yes that let it pass, if one did; see `approvals.Answer`."""
    parent_index: int | None = None
    """The call of `Agent` whose sub-agent made it; None: the main agent did, or it is unknown."""
    parent_tool_use_id: str | None = None

    def stop_clock(self, now_s: float) -> None:
        """Set the duration, without the wait for a person."""
        self.duration_ms = max(0, round((now_s - self.started_s - self.waited_s) * 1000))


@dataclass(frozen=True, slots=True)
class Notice:
    """A remark for the person about the turn."""

    code: str
    message: str


@dataclass(slots=True, kw_only=True)
class Evidence:
    """The evidence of one turn."""

    steps: Steps = field(default_factory=Steps)
    tools: dict[int, ToolUse] = field(default_factory=dict)
    """The calls by index, in order."""
    notices: list[Notice] = field(default_factory=list)
    stopped_by: StopReason | None = None
    """Why the gateway stopped the run; None if it did not."""
    denials: dict[int, str] = field(default_factory=dict)
    """The reason for each denied call, by index."""
    rewritten: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """The canonical input of each allowed call that the gate rewrote, by index; not sanitized."""
    allowed_by: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """The person's yes for each call that passed by one, by index."""
    waiting: set[int] = field(default_factory=set)
    """The calls that still wait for a person, by index."""
    passed: set[int] | None = None
    """The calls that the gate let pass, by index: no other one runs. None if that is not known."""
    retry: ModelRetrying | None = None
    model_failure: ModelFailed | None = None
    service: ServiceReport | None = None
    """The last failure of the model's service that the relay saw since an answer of this run."""
    model_stop: str | None = None
    """Why the model ended its last message, in its service's own words."""
    finish: RunFinished | ClientLost | None = None
    session_id: str | None = None
    model: str = ""
    last_entry_id: str | None = None
    usage: dict[str, int] = field(default_factory=dict)
    """Tokens of all runs by kind, and of the last answer alone `context_tokens` and
    `context_window`."""
    changes: Mapping[str, Any] = field(default_factory=NO_CHANGES.copy)
    """What the turn changed in the workspace, in figures."""
    has_picture: bool = False
    """The model was shown a picture."""
    is_summarised: bool = False
    """The model has a summary in the place of the older messages."""
    main_answers: int = 0
    subagent_answers: set[str] = field(default_factory=set)
    """How often the model has answered the agent, and the ids of its answers to sub-agents."""
    last_was_tool: bool = False
    """True if the model's last output was a tool call."""

    @property
    def text(self) -> str:
        """All text of the model for the person."""
        return self.steps.text

    @property
    def lost(self) -> bool:
        """True if the agent process ended during the run."""
        return isinstance(self.finish, ClientLost)

    @property
    def refused(self) -> bool:
        """True if the model declined; the agent program reports that as a service failure."""
        return isinstance(self.finish, RunFinished) and self.finish.stop_reason == "refusal"

    @property
    def cut_off(self) -> bool:
        """True if the answer reached the model's output limit; also reported as a failure."""
        if self.model_failure is not None:
            return self.model_failure.kind == "max_output_tokens"
        return isinstance(self.finish, RunFinished) and self.finish.stop_reason == "max_tokens"

    @property
    def model_gave_up(self) -> bool:
        """True if the model's service failed for good."""
        if self.stopped_by is not None:
            return self.stopped_by in SERVICE_FAILURES
        if self.refused or self.cut_off:
            return False
        if self.model_failure is not None:
            return True
        return isinstance(self.finish, RunFinished) and self.finish.terminal_reason == "api_error"

    @property
    def prompt_too_long(self) -> bool:
        """True if the service refused the prompt because of its length."""
        finish = self.finish
        return isinstance(finish, RunFinished) and (
            finish.terminal_reason in _TOO_LONG or finish.api_error_status == _REQUEST_TOO_LARGE
        )

    @property
    def context_full(self) -> bool:
        """True if the model's context window ended the run: the prompt or the answer
        did not fit.
        """
        return self.prompt_too_long or self.model_stop == _CONTEXT_FULL

    @property
    def unusual_stop(self) -> str | None:
        """The model's stop reason if it is unusual, such as `pause_turn`, else None."""
        return None if self.model_stop in _ORDINARY_STOPS else self.model_stop

    @property
    def has_open_calls(self) -> bool:
        """True if a tool is at work; a call of `Agent` waits for the model or its own calls."""
        return any(use.status is None and use.name != "Agent" for use in self.tools.values())

    @property
    def last_tool(self) -> ToolUse | None:
        """The last tool call."""
        return next(reversed(self.tools.values()), None)

    def begin_run(self) -> None:
        """Reset how the last run ended, before the next run."""
        self.finish = None
        self.steps.end_message()
        self.model_failure = None
        self.service = None
        self.model_stop = None
        self.retry = None

    def keep_ending(self, ending: RunFinished | ClientLost | None) -> None:
        """Restore an earlier run's ending, because the last run produced nothing."""
        self.begin_run()
        self.finish = ending
        self.stopped_by = None
        self.steps.drop_partial()

    def take(self, event: EngineEvent, now_s: float) -> None:
        """Add an event. Tool calls are added by `tool_called` instead."""
        match event:
            case SessionReady():
                self.session_id = event.session_id
                self.model = event.model
            case MessageEnded() | SubagentAnswered():
                self._message_ended(event)
            case EntryRecorded():
                self.last_entry_id = event.entry_id
            case MessageBegun() | TextDelta() | TextDone() | ThinkingDelta():
                self._take_text(event)
            case ToolReturned():
                self._tool_returned(event, now_s)
            case ModelRetrying() | ServiceFailed() | ModelFailed():
                self._model_failed(event)
            case RunFinished():
                self._run_finished(event)
            case Summarised():
                self.is_summarised = True
            case ClientLost():
                self.finish = event
            case _:
                return

    def tool_called(self, call: ToolCalled, summary: str, now_s: float) -> ToolUse:
        """Add a tool call."""
        use = ToolUse(
            index=call.index,
            tool_use_id=call.tool_use_id,
            name=call.name,
            input=call.input,
            summary=summary,
            started_s=now_s,
            allowed_by=self.allowed_by.get(call.index),
            parent_index=call.parent_index,
            parent_tool_use_id=call.parent_tool_use_id,
        )
        self._answered()
        self.tools[call.index] = use
        self.steps.add_call(call.index)
        self.last_was_tool = True
        return use

    def allow(self, index: int, allowed_by: Mapping[str, Any]) -> None:
        """Note the person's yes that lets a call pass."""
        self.allowed_by[index] = allowed_by
        if index in self.tools:
            self.tools[index].allowed_by = allowed_by

    def call_began(self, index: int, now_s: float) -> None:
        """Restart a call's clock: until now it may have stood behind one that waited
        for a person.
        """
        use = self.tools.get(index)
        if use is not None:
            use.started_s = now_s

    def settle(self, now_s: float) -> list[ToolUse]:
        """Set the status of calls that never returned; return them."""
        open_calls = [use for use in self.tools.values() if use.status is None]
        for use in open_calls:
            denied = use.index in self.denials
            use.has_begun = denied or self._has_passed(use.index)
            broken = self.stopped_by not in {None, *SERVICE_FAILURES} or not use.has_begun
            use.status = "denied" if denied else "interrupted" if broken else "unknown"
            use.error = self.denials.get(use.index)
            use.stop_clock(now_s)
        return open_calls

    def _has_passed(self, index: int) -> bool:
        return self.passed is None or index in self.passed

    def _model_failed(self, event: ModelRetrying | ServiceFailed | ModelFailed) -> None:
        match event:
            case ModelRetrying():
                self.retry = event
                self.steps.begin_message()
            case ServiceFailed():
                self.service = event.report
            case ModelFailed():
                self.model_failure = event
                self.steps.drop_partial()

    def _take_text(self, event: MessageBegun | TextDelta | TextDone | ThinkingDelta) -> None:
        match event:
            case MessageBegun():
                self.steps.begin_message()
                if event.context_tokens:
                    self.usage["context_tokens"] = event.context_tokens
            case ThinkingDelta():
                self.steps.add_thinking(event.text)
            case TextDelta():
                self.steps.add_text(event.text)
            case TextDone():
                self._end_block(event.text)

    def _message_ended(self, event: MessageEnded | SubagentAnswered) -> None:
        if isinstance(event, SubagentAnswered):
            self.subagent_answers.add(event.message_id)
            return
        self.main_answers += 1
        self.model_stop = event.stop_reason
        self.steps.end_thinking()
        self.steps.end_message()
        if "context_tokens" in self.usage:
            self.usage["context_tokens"] += event.output_tokens

    def _end_block(self, text: str) -> None:
        self._answered()
        if self.steps.end_text(text):
            self.last_was_tool = False

    def _answered(self) -> None:
        """Forget an earlier failure of the model's service: it answers again."""
        self.service = None
        self.model_failure = None

    def _tool_returned(self, event: ToolReturned, now_s: float) -> None:
        """Add what a call returned. The agent program's text about a call that did not run is
        dropped.

        A denied call is denied whatever is returned. A result without a call is ignored.
        """
        use = None if event.index is None else self.tools.get(event.index)
        if use is None or use.status is not None:
            return
        use.stop_clock(now_s)
        self.steps.end_message()
        self.has_picture |= event.has_picture
        if use.index in self.denials:
            use.status, use.error = "denied", self.denials[use.index]
        elif not event.is_error:
            use.status, use.output = "ok", event.text
        elif self.stopped_by is not None:
            use.status, use.has_begun = "interrupted", self._has_passed(use.index)
        else:
            use.status, use.output, use.error = "failed", event.text, event.text
        if use.status != "denied" and use.has_begun:
            use.output_chars = event.whole.chars if event.whole else len(event.text)

    def _run_finished(self, event: RunFinished) -> None:
        self.finish = event
        self._count_usage(event)
        for index in event.denied_calls:
            use = self.tools.get(index)
            if use is not None and use.status == "failed":
                use.status, use.output_chars = "denied", None
        by_itself = event.terminal_reason in _BY_ITSELF
        if by_itself and not event.is_error and not self.cut_off:
            self.model_failure = None
        if event.is_error or self.model_failure is not None:
            return
        self.model_stop = event.stop_reason
        if self.stopped_by in _MAY_COME_LATE and by_itself:
            self.stopped_by = None
        if not self.text:
            self._end_block(event.result or "")

    def _count_usage(self, event: RunFinished) -> None:
        for key in _TOKENS:
            value = event.usage.get(key)
            if isinstance(value, int):
                self.usage[key] = self.usage.get(key, 0) + value
        windows = event.context_windows
        if windows:
            self.usage["context_window"] = windows.get(self.model) or max(windows.values())
