"""What one model call is answered with, as values. `wire` turns them into the Messages API's JSON; `server` sends it."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

NEW_ID: Final = object()
"""Stands for an id that the wire makes up."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text block; it may be empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A thinking block; the wire makes up its signature."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call. A script may use any JSON value as name, input and id; None leaves the name or id out."""

    name: object
    arguments: object
    raw_arguments: str | None = None
    """Sent verbatim instead of `arguments`; it need not be JSON."""
    id: object = NEW_ID


Block: TypeAlias = Text | Thinking | ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How slowly a reply is sent."""

    delay_ms: int = 0
    """Before the first byte."""
    delta_delay_ms: int | None = None
    """Between chunks; None means the server's cadence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete answer: its blocks in order, and any stop reason."""

    blocks: tuple[Block, ...]
    stop_reason: str = "end_turn"
    pace: Pace = Pace()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An HTTP error in the API's shape."""

    status: int
    error_type: str
    message: str
    retry_after_s: float | None = None
    pace: Pace = Pace()


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """An answer that ends early."""

    ending: Literal["drop", "hang"] | Failure
    """A cut connection, silence until the client leaves, or an `error` event in the stream."""
    after_chars: int | None = None
    """How much of `text` is sent; None: not even the response's headers."""
    text: str = ""
    pace: Pace = Pace()


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A body that is sent verbatim."""

    body: str
    status: int = 200
    content_type: str = "application/json"
    pace: Pace = Pace()


Reply: TypeAlias = Answer | Failure | Broken | Raw


def say(text: str) -> Answer:
    """Return the answer that consists of `text`."""
    return Answer(blocks=(Text(text),))


def call(*calls: ToolCall, before: str = "") -> Answer:
    """Return the answer that makes `calls` at once, after the text `before` if there is any."""
    words: tuple[Block, ...] = (Text(before),) if before else ()
    return Answer(blocks=(*words, *calls), stop_reason="tool_use")
