"""What the relay reports of the model's service."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "unreachable", "refused", "redirected", "cut", "not_messages", "relay_lost", "silent", "heard"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceReport:
    """A failure of the service in one call of an agent, or a pause."""

    kind: Kind
    """`unreachable`: no answer began; `refused`: with a status that is an error; `redirected`: elsewhere; `cut`:
    the connection broke in an answer; `not_messages`: a successful answer is not of the Messages API;
    `relay_lost`: the relay itself ended. `silent`: no content has come for some time; `heard`: this is over."""
    detail: str = ""
    """Why it could not be reached or broke, such as ECONNREFUSED; where it redirects to."""
    status: int | None = None
    retry_after_s: float | None = None
    silent_s: float = 0.0
    """How long nothing has come."""


OnReport = Callable[[ServiceReport], None]
