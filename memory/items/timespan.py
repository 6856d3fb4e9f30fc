"""A span of time that a search is limited to, read from ISO dates."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

_DATE_CHARS: Final = 10
"""Of a date with hyphens."""
_RANGE: Final = "from 0001-01-02 to 9999-12-30"
"""Dates that stay valid in UTC, also with the day that ends them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpan:
    """From `since` on, and before `until`; None: no bound."""

    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def of(cls, since: str | None, until: str | None) -> "TimeSpan":
        """Read ISO dates or date-times, in UTC if they name no time zone. The day of `until` is
        included.

        Raise `ValueError` with a sentence for people if one of them is none.
        """
        return cls(since=_moment("since", since), until=_moment("until", until, whole_day=True))

    @property
    def is_bounded(self) -> bool:
        """False if it is all of time."""
        return self.since is not None or self.until is not None

    def covers(self, moment: datetime) -> bool:
        """Return whether a moment lies in it."""
        is_before = self.since is not None and moment < self.since
        return not is_before and (self.until is None or moment < self.until)


ALL_TIME: Final = TimeSpan()


def _moment(name: str, text: str | None, *, whole_day: bool = False) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        if whole_day and _is_date(text):
            moment += timedelta(days=1)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except ValueError:
        raise ValueError(f"`{name}` must be an ISO date{_mistake(text)}.") from None
    except OverflowError:
        raise ValueError(f"`{name}` must be an ISO date {_RANGE}.") from None


def _mistake(text: str) -> str:
    if _is_date(text[:_DATE_CHARS]):
        return " with a time from 00:00 to 23:59, such as 2026-01-31T09:30:00Z"
    return ", such as 2026-01-31"


def _is_date(text: str) -> bool:
    """Return whether a text is a date without a time of day, in any of the forms of ISO 8601."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
