"""Time in the form of the API: RFC 3339 in UTC with milliseconds."""

from collections.abc import Callable
from datetime import UTC, datetime

Now = Callable[[], datetime]
"""Returns the present, aware, in UTC."""


def utc_now() -> datetime:
    """Return the present, aware, in UTC."""
    return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """Return an aware time as RFC 3339 in UTC with milliseconds and a `Z`.

    Finer parts are cut off; the texts sort in the order of time.
    """
    assert moment.tzinfo is not None, "the time has a zone"
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_rfc3339(text: str) -> datetime:
    """Parse a text that `rfc3339` returned."""
    return datetime.fromisoformat(text)


def elapsed_ms(begin: datetime, end: datetime) -> int:
    """Return whole milliseconds from `begin` to `end`, at least 0."""
    return max(0, round((end - begin).total_seconds() * 1000))
