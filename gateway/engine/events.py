"""What an agent run tells, as values: the only form in which SDK messages travel inwards.

A run is a sequence of these; exactly one `RunFinished` or `ClientLost` comes last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One SDK message as it came, for the journal; the events read from it follow."""

    message: object
    solicited: bool = True
    """False: it belongs to a turn that nobody asked for."""


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
    """The session has a new last entry; a fork can branch off after it."""

    entry_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBegun:
    """The model starts an answer; pieces of one that was cut off before it are void."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEnded:
    """The model has finished a message, for the reason that its service reports."""

    stop_reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of text as it is streamed."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingDelta:
    """A piece of the model's thinking as it is streamed."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDone:
    """A whole block of text; it holds again what its deltas told."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """The model asks for a tool; whether it runs is not said yet."""

    tool_use_id: str
    """The model's own; it may repeat."""
    name: str
    input: Mapping[str, Any]
    index: int = 0
    """The call's number in the turn, from 1; a run sets it, and it identifies the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned:
    """What a tool call really returned."""

    tool_use_id: str
    is_error: bool
    text: str
    index: int | None = None
    """The call's number in the turn; None if the result cannot be attributed to one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRetrying:
    """The model's service failed and the agent waits to ask again."""

    attempt: int
    max_attempts: int
    delay_ms: int
    status: int | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailed:
    """The model's service failed for good; `text` is the agent program's, no answer."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """The agent's own account of how the run ended."""

    subtype: str
    is_error: bool
    result: str | None
    terminal_reason: str | None = None
    stop_reason: str | None = None
    api_error_status: int | None = None
    errors: Sequence[str] = ()
    denied_calls: Sequence[int] = ()
    """The indexes of the calls that were denied, as far as the agent program lists them."""
    session_id: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    cost_usd: float = 0.0
    """What this run alone cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLost:
    """The agent process ended in mid-run."""

    exit_code: int | None
    stderr: Sequence[str] = ()
    """The last lines that it wrote to standard error."""


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
    | ToolReturned
    | ModelRetrying
    | ModelFailed
    | RunFinished
    | ClientLost
)
