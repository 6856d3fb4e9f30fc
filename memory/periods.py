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

_NUMERALS: Final = "一二三四五六七八九十"
_WORDS: Final = ("", "a", "one", "two", "three", "four", "five", "six")
_YEAR: Final = r"(?<!\d)(?P<year>(?:19|20)\d\d)"
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_ZH_DAY: Final = rf"(?P<day>\d{{1,2}}|[{_NUMERALS}]{{1,3}})[日号]"
_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
_ZH_MONTH: Final = rf"(?P<month>(?<!\d)\d{{1,2}}|[{_NUMERALS}]{{1,2}})月"
_WEEKDAY: Final = r"(?P<weekday>mon|tue|wed|thu|fri|sat|sun)(?:day|s|sday|nesday|rs|rsday|urday)?\b"
_UNIT: Final = r"(?P<unit>day|week|month|year)s?\b"
_ZH_UNIT: Final = r"(?P<unit>天|周|星期|月|年)"
_COUNT: Final = rf"(?P<count>\d{{1,3}}|{'|'.join(_WORDS[1:])})"
_ZH_COUNT: Final = rf"(?P<count>(?<!\d)\d{{1,3}}|[{_NUMERALS}两]{{1,3}})个?"
_ENGLISH_BACK: Final = r"(?P<back>last|past|previous|this)"
_CHINESE_BACK: Final = r"(?P<back>上上|上|这|本)个?"
_ZH_YEAR: Final = r"(?P<back>去年|前年|今年)"
_BACK: Final = {"上上": 2, "前年": 2} | dict.fromkeys(("last", "past", "previous", "上", "去年"), 1)
_UNITS: Final = {"天": "day", "周": "week", "星期": "week", "月": "month"}
_NEWEST: Final = re.compile(
    r"\b(?:newest|latest|most recent(?:ly)?|last time)\b|最新|最近一[次份个条]|最后一次|上一?次"
)


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
    """Return the first period that a question names, and whether it asks for the newest."""
    folded = unicodedata.normalize("NFKC", question).casefold()
    for match, period in _matches(folded, _RULES, now.astimezone(UTC).date()):
        rest = f"{folded[: match.start()]} {folded[match.end() :]}"
        return AskedTime(_NEWEST.sub(" ", rest), period, _NEWEST.search(rest) is not None)
    return AskedTime(_NEWEST.sub(" ", folded), None, _NEWEST.search(folded) is not None)


def date_in(text: str) -> datetime | None:
    """Return the beginning of the first date with a year in a text, or None."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    for _, period in _matches(folded, _DATES, date.min):
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
            if (period := read(parts, today)) is not None:
                yield match, period
            else:  # 30 February is not some day of February
                text = f"{text[: match.start()]}{' ' * len(match[0])}{text[match.end() :]}"


def _dated(parts: _Parts, today: date) -> Period | None:
    """Return a year, month or day; without a year the latest one that has begun."""
    month = _month(parts["month"]) if "month" in parts else None
    day = _number(parts["day"]) if "day" in parts else None
    if "year" in parts:
        return _period(int(parts["year"]), month, day)
    if "back" in parts:
        return _period(today.year - _BACK.get(parts["back"], 0), month, day)
    both = (_period(year, month, day) for year in (today.year, today.year - 1))
    return next((period for period in both if period and period.first <= today), None)


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
    days = {"day": 1, "week": 7, "month": 31}.get(unit, 366)
    return Period(today - timedelta(days=days * _number(parts["count"])), today)


def _span_ago(parts: _Parts, today: date) -> Period:
    unit, count = _UNITS.get(parts["unit"], parts["unit"]), _number(parts["count"])
    return _one_day(today - timedelta(days=count)) if unit == "day" else _whole(unit, count, today)


_DATES: Final[Sequence[_Rule]] = [
    (rf"{_YEAR}(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark){_DAY}(?!\d)", _dated),
    (rf"{_YEAR}年{_ZH_MONTH}{_DAY}[日号]", _dated),
    (rf"(?<!\d){_DAY} (?:of )?{_MONTH},? {_YEAR}(?!\d)", _dated),
    (rf"\b{_MONTH} {_DAY},? {_YEAR}(?!\d)", _dated),
    (rf"{_YEAR}-(?P<month>\d{{1,2}})(?![-\d])", _dated),
    (rf"{_YEAR}年{_ZH_MONTH}", _dated),
    (rf"\b{_MONTH},? (?:of )?{_YEAR}(?!\d)", _dated),
]
_RULES: Final[Sequence[_Rule]] = [
    (rf"\bsince (?:{_MONTH},? )?{_YEAR}(?!\d)", _since),
    (rf"\bsince {_MONTH}", _since),
    (rf"{_YEAR}年(?:{_ZH_MONTH}份?)?以来", _since),
    (rf"{_ZH_MONTH}份?以来", _since),
    *_DATES,
    (rf"(?<!\d){_DAY} (?:of )?{_MONTH}", _dated),
    (rf"\b{_MONTH} {_DAY}(?!\d)", _dated),
    (rf"{_ZH_MONTH}{_ZH_DAY}", _dated),
    (rf"\b(?:in )?{_MONTH} (?:of )?(?P<back>last|this) year", _dated),
    (rf"\b(?:in|during|last|this) {_MONTH}", _dated),
    (rf"{_ZH_YEAR}的?{_ZH_MONTH}份?", _dated),
    (rf"(?<!个){_ZH_MONTH}份?(?![{_NUMERALS}\d])", _dated),
    (r"大前天", _days_ago(3)),
    (r"\bday before yesterday\b|前天", _days_ago(2)),
    (r"\byesterday\b|\blast night\b|昨[天日晚夜早]", _days_ago(1)),
    (r"\btoday\b|\bthis (?:morning|afternoon|evening)\b|今[天日早晚晨]", _days_ago(0)),
    (r"\b(?:last|past|over the|at the) weekend\b|(?:上个?|这个?)?周末", _last_weekend),
    (r"\bweek before last\b", lambda _, today: _whole("week", 2, today)),
    (r"\b(?:a )?(?:couple of|few) days (?:ago|back)\b|\bthe other day\b|前[几两]天", _of_late(7)),
    (r"\b(?:recently|lately)\b|最近(?=[^\d一二三四五六七八九十两几])", _of_late(31)),
    (rf"\b(?:last|on) {_WEEKDAY}", _last_weekday),
    (rf"{_CHINESE_BACK}(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])", _weekday_of_week),
    (rf"\b{_ENGLISH_BACK} (?P<unit>week|month|year)\b", _named_span),
    (rf"{_CHINESE_BACK}(?P<unit>周|星期|月)", _named_span),
    (_ZH_YEAR, _named_span),
    (rf"\b(?:last|past) {_COUNT} {_UNIT}", _latest_span),
    (rf"(?:最近|过去){_ZH_COUNT}{_ZH_UNIT}", _latest_span),
    (rf"\b{_COUNT} {_UNIT} ago\b", _span_ago),
    (rf"{_ZH_COUNT}{_ZH_UNIT}(?:之|以)?前", _span_ago),
    (rf"\bin {_YEAR}(?!\d)", _dated),
    (rf"{_YEAR}年", _dated),
]
"""The most specific first."""


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
    last_month = month or 12
    return Period(first, date(year, last_month, monthrange(year, last_month)[1]))


def _whole(unit: str, back: int, today: date) -> Period:
    """Return the week, month or year that lies so many of them back."""
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return Period(monday, monday + timedelta(days=6))
    months = today.year * 12 + today.month - 1 - back
    period = (
        _period(months // 12, months % 12 + 1, None)
        if unit == "month"
        else _period(today.year - back, None, None)
    )
    assert period is not None, "every month and year of this era exists"
    return period


def _number(text: str) -> int:
    if text.isdecimal():
        return int(text)
    if text in _WORDS:
        return max(1, _WORDS.index(text) - 1)
    tens, ten, ones = text.replace("两", "二").rpartition("十")
    value = _NUMERALS.find(ones[:1]) + 1 if ones else 0
    return value + (10 * (_NUMERALS.find(tens[:1]) + 1 if tens else 1) if ten else 0)
