"""Log lines that say the same again and again: the first stays, with how often it came."""

import re
from collections import Counter
from itertools import groupby
from operator import itemgetter
from typing import Final

from policies.patterns import read_patterns

_PATTERNS = read_patterns(__file__)
_STAMP: Final = re.compile(_PATTERNS["stamp"])
_LEVEL: Final = re.compile(_PATTERNS["level"])
_CHANCE: Final = re.compile(_PATTERNS["chance"])
_NUMBER: Final = re.compile(r"\d+")
_TELLING: Final = re.compile(_PATTERNS["telling"], re.IGNORECASE)
_MIN_SAME = 3
_MIN_ALIKE = 6
_ALIKE_HEAD = 2


def drop_repeated_lines(text: str) -> str:
    """Leave out log lines that were there before, and the middle of long runs of like lines."""
    return _drop_alike(_drop_same(text))


def _drop_same(text: str) -> str:
    """Equal but for time and chance: anywhere where it is a log's line, else only one after another."""
    formed = [(_form(line), line) for line in text.split("\n")]
    logged = Counter(form for form, _ in formed if form.startswith("\0"))
    kept: list[str] = []
    seen: set[str] = set()
    for form, run in groupby(formed, itemgetter(0)):
        same = [line for _, line in run]
        count = max(logged[form], len(same))
        remark = f" [{count} times]" if form else ""
        if form in seen:
            continue
        if count < _MIN_SAME or (count - 1) * (len(same[0]) + 1) <= len(remark):
            kept += same
            continue
        kept.append(same[0] + remark)
        if logged[form] == count:
            seen.add(form)
    return "\n".join(kept)


def _form(line: str) -> str:
    """What a line says without when; begins with NUL where it is a log's."""
    if not line.strip():
        return ""
    without, stamps = _STAMP.subn("", line)
    is_logged = bool(stamps) or bool(_LEVEL.search(line))
    return ("\0" if is_logged else " ") + _CHANCE.sub("#", without).rstrip()


def _drop_alike(text: str) -> str:
    """Of many lines in a row that differ in numbers alone, keep two and the last.

    Lines that speak of failures are left: there the number may be what matters.
    """
    kept: list[str] = []
    for form, run in groupby(text.split("\n"), _numberless):
        lines = list(run)
        middle = lines[_ALIKE_HEAD:-1]
        remark = f"[… {len(middle)} lines like these]"
        is_long = sum(map(len, middle)) + len(middle) > len(remark) + 1
        if form and len(lines) >= _MIN_ALIKE and is_long:
            lines[_ALIKE_HEAD:-1] = [remark]
        kept += lines
    return "\n".join(kept)


def _numberless(line: str) -> str | None:
    if not _NUMBER.search(line) or _TELLING.search(line):
        return None
    return _NUMBER.sub("#", line)
