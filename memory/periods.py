"""Reads periods of time: dates in a text, and what a question means by "last week", "in October" or 去年.

A period is a span of days in UTC. A date with a year stands for itself; everything else is relative to the
day of the question. A month or a day without a year is the latest one that has begun.
"""

import re
import unicodedata
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from policies.patterns import read_patterns

_NUMERALS: Final = "一二三四五六七八九十"
_WORDS: Final = ("", "a", "one", "two", "three", "four", "five", "six")
_BACK: Final = {"上上": 2, "前年": 2} | dict.fromkeys(("last", "past", "previous", "上", "去年"), 1)
_UNITS: Final = {"天": "day", "周": "week", "星期": "week", "月": "month"} | dict.fromkeys(
    ("季", "季度"), "quarter"
)
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_SEASONS: Final = ("spring", "summer", "autumn", "winter", "春", "夏", "秋", "冬")
_QUARTERS: Final = ("first", "second", "third", "fourth", *"一二三四", *"1234")
_PATTERNS: Final = read_patterns(__file__)
_NEWEST: Final = re.compile(_PATTERNS["newest"])


@dataclass(frozen=True, slots=True)
class Period:
    """Some days."""

    first: date
    last: date

    def covers(self, moment: datetime) -> bool:
        """Return whether a moment lies in it."""
        return self.first <= moment.astimezone(UTC).date() <= self.last

    @property
    def bounds(self) -> tuple[str, str]:
        """Its first day, and the day after its last, as texts that sort among times."""
        return self.first.isoformat(), (self.last + timedelta(days=1)).isoformat()


@dataclass(frozen=True, slots=True)
class AskedTime:
    """What a question says about time."""

    rest: str
    """The question without these words, in lower case."""
    period: Period | None = None
    is_newest: bool = False
    """True if the latest of several is asked for."""


def asked_time(question: str, now: datetime) -> AskedTime:
    """Return the first period that a question names, and whether it asks for the newest.

    A period to come is not one: what is planned for it was said before, in these words.
    """
    folded = unicodedata.normalize("NFKC", question).casefold()
    for match, period in _matches(folded, _RULES, now.astimezone(UTC).date()):
        rest = f"{folded[: match.start()]} {folded[match.end() :]}"
        return AskedTime(_NEWEST.sub(" ", rest), period, _NEWEST.search(rest) is not None)
    return AskedTime(_NEWEST.sub(" ", folded), None, _NEWEST.search(folded) is not None)


def date_in(text: str) -> datetime | None:
    """Return the beginning of the first date with a year in a text, or None."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    for _, period in _matches(folded, _DATES, date.max):
        return datetime.combine(period.first, time(), UTC)
    return None


_Parts = Mapping[str, str]
_Rule = tuple[str, Callable[[_Parts, date], Period | None]]


def _matches(
    text: str, rules: Sequence[_Rule], today: date
) -> Iterator[tuple[re.Match[str], Period]]:
    for expression, read in rules:
        for match in list(re.finditer(expression, text)):
            parts = {name: value for name, value in match.groupdict().items() if value}
            if (period := read(parts, today)) is not None and period.first <= today:
                yield match, period
            else:  # 30 February is not some day of February, and next March not the last one
                text = f"{text[: match.start()]}{' ' * len(match[0])}{text[match.end() :]}"


def _dated(parts: _Parts, today: date) -> Period | None:
    """Return a year, month or day; without a year the latest one that has begun."""
    month = _month(parts["month"]) if "month" in parts else None
    day = _number(parts["day"]) if "day" in parts else None
    return _latest(parts, today, lambda year: _period(year, month, day))


def _part_of_year(parts: _Parts, today: date) -> Period | None:
    """Return a season or a quarter; see `_latest`."""
    name = parts["part"].replace("fall", "autumn")
    names, first = (_SEASONS, 2) if name in _SEASONS else (_QUARTERS, 0)
    month = first + names.index(name) % 4 * 3
    return _latest(parts, today, lambda year: _months(year * 12 + month, 3))


def _latest(parts: _Parts, today: date, of_year: Callable[[int], Period | None]) -> Period | None:
    """Return the period of the named year; without one the latest that has begun or, if "last", ended."""
    if "year" in parts:
        return of_year(int(parts["year"]))
    if "back" in parts:
        return of_year(today.year - _BACK.get(parts["back"], 0))
    periods = filter(None, map(of_year, range(today.year, today.year - 3, -1)))
    reached = (p for p in periods if (p.last < today if "last" in parts else p.first <= today))
    return next(reached, None)


def _days_ago(count: int) -> Callable[[_Parts, date], Period]:
    return lambda _, today: _one_day(today - timedelta(days=count))


def _of_late(days: int) -> Callable[[_Parts, date], Period]:
    return lambda _, today: Period(today - timedelta(days=days), today)


def _since(parts: _Parts, today: date) -> Period | None:
    begun = _dated(parts, today)
    return Period(begun.first, today) if begun is not None and begun.first <= today else None


def _last_weekend(_: _Parts, today: date) -> Period:
    saturday = today - timedelta(days=today.weekday() + 2)
    return Period(saturday, saturday + timedelta(days=1))


def _last_weekday(parts: _Parts, today: date) -> Period:
    number = ("mon", "tue", "wed", "thu", "fri", "sat", "sun").index(parts["weekday"])
    return _one_day(today - timedelta(days=(today.weekday() - number) % 7 or 7))


def _weekday_of_week(parts: _Parts, today: date) -> Period:
    monday = _whole("week", _BACK.get(parts["back"], 0), today).first
    return _one_day(monday + timedelta(days=min(6, "一二三四五六日天".index(parts["weekday"]))))


def _named_span(parts: _Parts, today: date) -> Period:
    unit = parts.get("unit", "year")
    return _whole(_UNITS.get(unit, unit), _BACK.get(parts["back"], 0), today)


def _latest_span(parts: _Parts, today: date) -> Period:
    unit = _UNITS.get(parts["unit"], parts["unit"])
    days = {"day": 1, "week": 7, "month": 31, "quarter": 92}.get(unit, 366)
    return Period(today - timedelta(days=days * _number(parts["count"])), today)


def _span_ago(parts: _Parts, today: date) -> Period:
    unit, count = _UNITS.get(parts["unit"], parts["unit"]), _number(parts["count"])
    return _one_day(today - timedelta(days=count)) if unit == "day" else _whole(unit, count, today)


_READERS: Final[Mapping[str, Callable[[_Parts, date], Period | None]]] = {
    "date": _dated,
    "dated": _dated,
    "part_of_year": _part_of_year,
    "since": _since,
    "three_days_ago": _days_ago(3),
    "two_days_ago": _days_ago(2),
    "yesterday": _days_ago(1),
    "today": _days_ago(0),
    "last_weekend": _last_weekend,
    "week_before_last": lambda _, today: _whole("week", 2, today),
    "past_week": _of_late(7),
    "past_month": _of_late(31),
    "last_weekday": _last_weekday,
    "weekday_of_week": _weekday_of_week,
    "named_span": _named_span,
    "latest_span": _latest_span,
    "span_ago": _span_ago,
}
_RULES: Final[Sequence[_Rule]] = [
    (pattern, _READERS[name.split()[0]]) for name, pattern in _PATTERNS.items() if " " in name
]
_DATES: Final = [
    (pattern, _dated) for name, pattern in _PATTERNS.items() if name.startswith("date ")
]


def _month(name: str) -> int:
    names = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
    return names.index(name[:3]) + 1 if name[:3] in names else _number(name)


def _one_day(day: date) -> Period:
    return Period(day, day)


def _period(year: int, month: int | None, day: int | None) -> Period | None:
    try:
        first = date(year, month or 1, day or 1)
    except ValueError:
        return None
    if day is not None:
        return _one_day(first)
    return _months(year * 12 + first.month - 1, 1 if month else 12)


def _whole(unit: str, back: int, today: date) -> Period:
    """Return the week, month, quarter or year that lies so many of them back."""
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return Period(monday, monday + timedelta(days=6))
    count = _MONTHS[unit]
    return _months(((today.year * 12 + today.month - 1) // count - back) * count, count)


def _months(first: int, count: int) -> Period:
    """Return some months; the first one is counted from January of the year 0."""
    year, month = divmod(first + count - 1, 12)
    last = date(year, month + 1, monthrange(year, month + 1)[1])
    return Period(date(first // 12, first % 12 + 1, 1), last)


def _number(text: str) -> int:
    if text.isdecimal():
        return int(text)
    if text in _WORDS:
        return max(1, _WORDS.index(text) - 1)
    tens, ten, ones = text.replace("两", "二").rpartition("十")
    value = _NUMERALS.find(ones[:1]) + 1 if ones else 0
    return value + (10 * (_NUMERALS.find(tens[:1]) + 1 if tens else 1) if ten else 0)
