"""What the relay reports of the model's service, and a report as a line between the two processes.
Pure.

A report is bounded where it is made, and checked where it is read: what the service says becomes
part of it.
"""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Kind = Literal[
    "unreachable", "refused", "redirected", "cut", "not_messages", "relay_lost", "silent", "heard"
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
    some time; `heard`: this is over."""
    detail: str = ""
    """Why it could not be reached or broke, such as ECONNREFUSED; where it redirects to."""
    status: int | None = None
    retry_after_s: float | None = None
    silent_s: float = 0.0
    """How long nothing has come."""


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
    try:
        report = ServiceReport(**fields)
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
    )


def _is_seconds(value: Any) -> bool:
    return type(value) in {int, float} and 0 <= value < math.inf
