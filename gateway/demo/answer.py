"""What one model call is answered with: plain values, before they become bytes.

The scripts (`script`) and the plain requests (`plan`) decide on one of these; `wire` turns it into the Messages API's shapes and
`server` sends it. Nothing here does I/O.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

StopReason: TypeAlias = str
"""Sent verbatim, known to the API or not."""


@dataclass(frozen=True, slots=True)
class Text:
    """Words for the person; may be empty, which the API allows and agents must survive."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A thinking block; its signature is made up on the wire."""

    text: str


NEW_ID: Final = object()
"""Stands for an id that is made up on the wire."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the agent is asked to make.

    Scripts may make calls that no API promises: any JSON value as name, input and id.
    """

    name: object
    """None: the call has no name."""
    arguments: object
    raw_arguments: str | None = None
    """Sent instead of `arguments`, as it is; it need not be JSON."""
    id: object = NEW_ID
    """None: the call has no id."""


Block: TypeAlias = Text | Thinking | ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How slowly an answer comes."""

    delay_ms: int = 0
    """Silence before the first byte."""
    delta_delay_ms: int | None = None
    """Pause between chunks; `None` means the server's cadence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete model answer: its blocks in order and why it stopped."""

    blocks: tuple[Block, ...]
    stop_reason: StopReason = "end_turn"
    pace: Pace = Pace()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An HTTP error in the API's shape instead of an answer."""

    status: int
    error_type: str
    message: str
    retry_after_s: float | None = None
    pace: Pace = Pace()


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """An answer that does not come to its end: nothing but a start of `text`, and then `ending`."""

    ending: Literal["drop", "hang"] | Failure
    """A cut connection, silence until the client goes away, or an `error` event in the stream."""
    after_chars: int | None = None
    """How much of `text` is sent; None: not even the response's headers."""
    text: str = ""
    pace: Pace = Pace()


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A body sent verbatim, whether or not the Messages API knows its like."""

    body: str
    status: int = 200
    content_type: str = "application/json"
    pace: Pace = Pace()


Reply: TypeAlias = Answer | Failure | Broken | Raw


def say(text: str) -> Answer:
    """The answer that is nothing but `text`."""
    return Answer(blocks=(Text(text),))


def call(*calls: ToolCall, before: str = "") -> Answer:
    """The answer that asks for `calls` at once, after the words `before` where there are any."""
    words: tuple[Block, ...] = (Text(before),) if before else ()
    return Answer(blocks=(*words, *calls), stop_reason="tool_use")
