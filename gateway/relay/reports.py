"""What the relay reports of the model's service."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["unreachable", "refused", "cut", "not_messages"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceReport:
    """A failure of the service in one call of an agent."""

    kind: Kind
    """`unreachable`: no answer began; `refused`: with a status that is an error; `cut`: the connection broke in
    an answer; `not_messages`: a successful answer is not of the Messages API."""
    detail: str = ""
    """Why it could not be reached or broke, such as ECONNREFUSED."""
    status: int | None = None
    retry_after_s: float | None = None


OnReport = Callable[[ServiceReport], None]
