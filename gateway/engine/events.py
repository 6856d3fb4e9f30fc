"""The events of an agent run: the only form in which SDK messages reach the rest of the gateway.

A run is a sequence of these; the last is exactly one `RunFinished` or `ClientLost`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.relay.reports import ServiceReport

NO_NAME = "unnamed"
"""The name of a call without a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """An SDK message, for the journal; the events translated from it follow."""

    message: object
    solicited: bool = True
    """False: it belongs to an unsolicited turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReady:
    """The agent's session has begun or was resumed."""

    session_id: str
    model: str
    tools: Sequence[str] = ()
    skills: Sequence[str] = ()
    slash_commands: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRecorded:
    """The session has a new last entry, after which it can be forked."""

    entry_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBegun:
    """The model starts an answer; earlier pieces of an unfinished answer are void."""

    context_tokens: int = 0
    """How many tokens the model has read for it; 0 if its service does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEnded:
    """The model has finished a message; the reason is the service's."""

    stop_reason: str
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A streamed piece of text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingDelta:
    """A streamed piece of thinking."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDone:
    """A whole block of text, including its deltas."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """The model calls a tool; it has not run yet."""

    tool_use_id: str
    """Chosen by the model; it may repeat."""
    name: str
    input: Mapping[str, Any]
    is_unreadable: bool = False
    """The input was no whole JSON, so the agent program does not run the call."""
    index: int = 0
    """The call's number in the turn, from 1. Set by the run; it identifies the call."""
    parent_tool_use_id: str | None = None
    """The call of `Agent` whose sub-agent calls; None: the main agent does."""
    parent_index: int | None = None
    """That call's number; None also if it is not known. Set by the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentAnswered:
    """The model answered a sub-agent; may come several times for one answer."""

    message_id: str


MAX_WHOLE_CHARS = 2_000_000
"""Of one output; the rest is counted and not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeOutput:
    """What a tool returned, before it was cut for the model."""

    text: str
    """Its first `MAX_WHOLE_CHARS` characters."""
    chars: int | None
    """Its true length; None if nobody knows it."""
    least_chars: int = 0
    """If `chars` is None: it is longer than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """A piece of what a command writes while it runs; `ToolReturned` brings all of it."""

    index: int
    """The call's number in the turn."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned:
    """The result of a tool call."""

    tool_use_id: str
    is_error: bool
    text: str
    has_picture: bool = False
    """The model is shown a picture with it."""
    whole: WholeOutput | None = None
    """All of the output, if `text` is a part of it; else None."""
    index: int | None = None
    """The call's number in the turn; None if the result cannot be attributed to one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRetrying:
    """The model's service failed and the agent waits before a retry."""

    attempt: int
    max_attempts: int
    delay_ms: int
    status: int | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFailed:
    """The relay saw a failure of the model's service; the agent may still retry."""

    report: ServiceReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailed:
    """The model's service failed finally; `text` is the agent program's message, not an answer."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRefused:
    """The model's service refused a picture or document; the agent goes on without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarised:
    """The agent program put a summary in the place of the conversation's older messages."""

    trigger: Literal["auto", "manual"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """How the run ended, as the agent reports it."""

    subtype: str
    is_error: bool
    result: str | None
    terminal_reason: str | None = None
    stop_reason: str | None = None
    api_error_status: int | None = None
    errors: Sequence[str] = ()
    denied_calls: Sequence[int] = ()
    """The indexes of the denied calls that the agent program lists."""
    session_id: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    cost_usd: float = 0.0
    """The cost of this run."""
    context_windows: Mapping[str, int] = field(default_factory=dict)
    """How many tokens fit into the context of each model that was used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLost:
    """The agent process ended during the run."""

    exit_code: int | None
    stderr: Sequence[str] = ()
    """The last lines of standard error."""


EngineEvent = (
    Observed
    | SessionReady
    | EntryRecorded
    | MessageBegun
    | MessageEnded
    | TextDelta
    | ThinkingDelta
    | TextDone
    | ToolCalled
    | ToolOutput
    | SubagentAnswered
    | ToolReturned
    | ModelRetrying
    | ServiceFailed
    | ModelFailed
    | PictureRefused
    | Summarised
    | RunFinished
    | ClientLost
)
