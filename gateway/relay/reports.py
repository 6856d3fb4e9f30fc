"""What the relay reports of the model's service, and a report as a line between the two processes.
Pure.

A report is bounded where it is made, and checked where `supervisor` reads it: what the service says
becomes part of it. The relay's own process imports no pydantic.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, ClassVar, Literal, get_args

from annotated_types import Interval, Len

Kind = Literal[
    "unreachable",
    "refused",
    "redirected",
    "cut",
    "not_messages",
    "relay_lost",
    "silent",
    "heard",
    "called",
]

MAX_LINE_BYTES = 4096
"""A pipe takes so many bytes whole or not at all."""
_MAX_DETAIL_CHARS = 200
_LONGEST_WAIT_S = 366 * 24 * 3600.0
"""No service means a longer wait."""
Seconds = Annotated[float, Interval(ge=0)]
Token = Literal[
    "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"
]
TOKENS = get_args(Token)
"""The figures of a call's usage, in the service's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceReport:
    """A failure of the service in one call of an agent, or a pause."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {
        "strict": True,
        "extra": "forbid",
        "allow_inf_nan": False,
    }
    kind: Kind
    """`unreachable`: no answer began; `refused`: with a status that is an error; `redirected`:
    elsewhere; `cut`: the connection broke in an answer; `not_messages`: a successful answer is not
    of the Messages API; `relay_lost`: the relay itself ended. `silent`: no content has come for
    some time; `heard`: this is over; `called`: see `ModelCall`."""
    detail: Annotated[str, Len(0, _MAX_DETAIL_CHARS)] = ""
    """Why it could not be reached or broke, such as ECONNREFUSED; where it redirects to."""
    status: Annotated[int, Interval(ge=100, lt=1000)] | None = None
    retry_after_s: Annotated[float, Interval(ge=0, le=_LONGEST_WAIT_S)] | None = None
    silent_s: Seconds = 0.0
    """How long nothing has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall(ServiceReport):
    """A call of the model's service that has ended; made only while somebody wants to know."""

    kind: Kind = "called"
    fault: Kind | None = None
    """What was wrong with it, as another report tells at once."""
    is_whole: bool = False
    """The answer was passed on to its end."""
    seconds: Seconds
    """From the request until now."""
    first_s: Seconds | None = None
    """From the request to the first content of the answer; None: there was none."""
    asked_model: str = ""
    model: str = ""
    """The models that the request and the answer name; empty if unknown."""
    tokens: Mapping[Token, int] = field(default_factory=dict)
    """What the answer says that was used; see `TOKENS`."""


OnReport = Callable[[ServiceReport], None]


def meant_wait(seconds: float) -> float | None:
    """Return a wait that a service asks for; None if it is endless."""
    return max(0.0, seconds) if seconds <= _LONGEST_WAIT_S else None


def report_line(client_id: str, report: ServiceReport) -> bytes:
    """Return the line of a client's report, at most `MAX_LINE_BYTES` long."""
    detail = report.detail
    if len(detail) > _MAX_DETAIL_CHARS:
        detail = detail[: _MAX_DETAIL_CHARS - 1] + "…"
    fields = {**asdict(report), "detail": detail, "client": client_id}
    return json.dumps(fields, allow_nan=False).encode() + b"\n"
