"""What the relay reports of the model's service."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["unreachable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceReport:
    """A failure of the service in one call of an agent."""

    kind: Kind
    """`unreachable`: no answer began; `detail` is the reason, such as ECONNREFUSED."""
    detail: str = ""


OnReport = Callable[[ServiceReport], None]
