"""Time as the contract writes it: RFC 3339 in UTC, milliseconds."""

from collections.abc import Callable
from datetime import UTC, datetime

Now = Callable[[], datetime]
"""Where the present moment comes from; aware, in UTC."""


def utc_now() -> datetime:
    """Tell the present moment, aware, in UTC."""
    return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """Write an aware moment as RFC 3339 in UTC with milliseconds and a `Z`.

    What is finer is cut off; texts of this form sort as the moments do.
    """
    assert moment.tzinfo is not None, "a moment without a zone is none"
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_rfc3339(text: str) -> datetime:
    """Read what `rfc3339` wrote."""
    return datetime.fromisoformat(text)


def elapsed_ms(begin: datetime, end: datetime) -> int:
    """Whole milliseconds from `begin` to `end`, never negative."""
    return max(0, round((end - begin).total_seconds() * 1000))
