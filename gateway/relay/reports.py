"""What the relay reports of the model's service, and a report as a line between the two processes.
Pure.

A report is bounded where it is made, and checked where it is read: what the service says becomes
part of it.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

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
_STATUSES = range(100, 1000)
_LONGEST_WAIT_S = 366 * 24 * 3600.0
"""No service means a longer wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceReport:
    """A failure of the service in one call of an agent, or a pause."""

    kind: Kind
    """`unreachable`: no answer began; `refused`: with a status that is an error; `redirected`:
    elsewhere; `cut`: the connection broke in an answer; `not_messages`: a successful answer is not
    of the Messages API; `relay_lost`: the relay itself ended. `silent`: no content has come for
    some time; `heard`: this is over; `called`: see `ModelCall`."""
    detail: str = ""
    """Why it could not be reached or broke, such as ECONNREFUSED; where it redirects to."""
    status: int | None = None
    retry_after_s: float | None = None
    silent_s: float = 0.0
    """How long nothing has come."""


TOKENS = (
    *("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    "output_tokens",
)
"""The figures of a call's usage, in the service's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall(ServiceReport):
    """A call of the model's service that has ended; made only while somebody wants to know."""

    kind: Kind = "called"
    fault: Kind | None = None
    """What was wrong with it, as another report tells at once."""
    is_whole: bool = False
    """The answer was passed on to its end."""
    seconds: float
    """From the request until now."""
    first_s: float | None = None
    """From the request to the first content of the answer; None: there was none."""
    asked_model: str = ""
    model: str = ""
    """The models that the request and the answer name; empty if unknown."""
    tokens: Mapping[str, int] = field(default_factory=dict)
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


def read_report(line: bytes) -> tuple[str, ServiceReport] | None:
    """Return the client's id and the report of a line; None for a sign of life.

    Raise `ValueError` if the line is neither.
    """
    fields = _parse(line)
    if fields == {}:
        return None
    client_id = fields.pop("client", None) if isinstance(fields, dict) else None
    is_call = isinstance(fields, dict) and fields.get("kind") == "called"
    try:
        report = (ModelCall if is_call else ServiceReport)(**fields)
    except TypeError as exc:
        raise ValueError(f"not the fields of a report: {exc}") from exc
    if not (client_id and isinstance(client_id, str) and _is_sound(report)):
        raise ValueError("a field of the report has a value that it cannot have")
    return client_id, report


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line)
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc


def _is_sound(report: ServiceReport) -> bool:
    fields = asdict(report)
    wait_s, status, detail = fields["retry_after_s"], fields["status"], fields["detail"]
    return (
        fields["kind"] in get_args(Kind)
        and isinstance(detail, str)
        and len(detail) <= _MAX_DETAIL_CHARS
        and (status is None or (type(status) is int and status in _STATUSES))
        and (wait_s is None or (_is_seconds(wait_s) and meant_wait(wait_s) == wait_s))
        and _is_seconds(fields["silent_s"])
        and (not isinstance(report, ModelCall) or _is_sound_call(report))
    )


def _is_sound_call(call: ModelCall) -> bool:
    fields = asdict(call)
    tokens = fields["tokens"]
    return (
        fields["fault"] in {None, *get_args(Kind)}
        and isinstance(fields["is_whole"], bool)
        and _is_seconds(fields["seconds"])
        and (fields["first_s"] is None or _is_seconds(fields["first_s"]))
        and isinstance(fields["asked_model"], str)
        and isinstance(fields["model"], str)
        and isinstance(tokens, dict)
        and all(name in TOKENS and type(tokens[name]) is int for name in tokens)
    )


def _is_seconds(value: Any) -> bool:
    return type(value) in {int, float} and 0 <= value < math.inf
