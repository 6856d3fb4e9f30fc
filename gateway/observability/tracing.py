"""What makes traces of turns, as the rest of the gateway uses it; see `otlp` and `trace_plan`.

The values of attributes are figures, ids and words of the program. Text of persons, models and
tools never belongs there.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, Protocol

Value = bool | int | float | str | Sequence[str]
Attributes = Mapping[str, Value]
Kind = Literal["internal", "client"]


class Span(Protocol):
    """A step of a trace. No method waits or raises; moments are those of the event loop's clock."""

    @property
    def trace_id(self) -> str:
        """The id of the trace: 32 hexadecimal digits."""

    def begin(self, name: str, began_s: float, kind: Kind = "internal") -> "Span":
        """Return a step within this one, which began then."""

    def end(self, ended_s: float, attributes: Attributes, error: str | None = None) -> None:
        """End it; `error` is the kind of its failure, None if it did not fail."""


class Tracer(Protocol):
    """Makes traces."""

    def begin(self, name: str, began_s: float, caller: Mapping[str, str]) -> Span:
        """Return the first step of a trace; `caller` are the W3C headers of the trace that it goes
        on with, if any.
        """

    def close_blocking(self) -> None:
        """Send what waits, within a bound."""


OnLost = Callable[[int], object]
"""Called with the number of spans that could not be sent, in any thread."""
OpenTracer = Callable[[OnLost], AbstractAsyncContextManager[Tracer]]
"""Opens what makes traces; leaving sends what waits, within a bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """The HTTP request that is being served."""

    caller: Mapping[str, str]
    """Its `traceparent` and `tracestate`."""
    came_s: float


INCOMING: ContextVar[Incoming | None] = ContextVar("incoming", default=None)
"""Set by the HTTP layer while it serves a request, if traces are made."""
