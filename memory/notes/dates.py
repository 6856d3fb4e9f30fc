"""Finds the date that a note's heading, front matter or file name gives."""

import re
import unicodedata
from datetime import UTC, datetime
from typing import Final

_MONTHS: Final = [
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
]
_NUMERALS: Final = "一二三四五六七八九"
_YEAR: Final = r"(?<!\d)(?P<year>(?:19|20)\d\d)"
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
_ZH_MONTH: Final = r"(?P<month>\d{1,2}|[一二三四五六七八九十]{1,2})月"
_ZH_DAY: Final = r"(?P<day>\d{1,2}|[一二三四五六七八九十]{1,3})[日号]"
_DATES: Final = [
    re.compile(pattern)
    for pattern in (
        _YEAR + r"(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)" + _DAY + r"(?!\d)",  # 2026-01-31
        _YEAR + "年" + _ZH_MONTH + _ZH_DAY,  # 2026年1月31日
        r"(?<!\d)" + _DAY + " (?:of )?" + _MONTH + ",? " + _YEAR + r"(?!\d)",  # 31 January 2026
        r"\b" + _MONTH + " " + _DAY + ",? " + _YEAR + r"(?!\d)",  # January 31, 2026
        _YEAR + r"-(?P<month>\d{1,2})(?![-\d])",  # 2026-01
        _YEAR + "年" + _ZH_MONTH,  # 2026年1月
        r"\b" + _MONTH + ",? (?:of )?" + _YEAR + r"(?!\d)",  # January 2026
    )
]
"""The most exact first."""


def date_in(text: str) -> datetime | None:
    """Return the beginning of the first date with a year in a text, or None."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    for pattern in _DATES:
        for found in list(pattern.finditer(folded)):
            parts = found.groupdict()
            try:
                return datetime(
                    int(parts["year"]),
                    _number(parts["month"]),
                    _number(parts.get("day") or "1"),
                    tzinfo=UTC,
                )
            except ValueError:  # 30 February is not some day of February
                start, end = found.span()
                folded = f"{folded[:start]}{' ' * (end - start)}{folded[end:]}"
    return None


def _number(text: str) -> int:
    if text.isdecimal():
        return int(text)
    if text[:3] in _MONTHS:
        return _MONTHS.index(text[:3]) + 1
    tens, ten, ones = text.rpartition("十")
    value = _NUMERALS.find(ones[:1]) + 1 if ones else 0
    return value + (10 * (_NUMERALS.find(tens[:1]) + 1 if tens else 1) if ten else 0)
