"""Log lines that say the same again and again: the first stays, with how often it came."""

import re
from collections import Counter
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
    lines = text.split("\n")
    forms = [_form(line) for line in lines]
    logged = Counter(form for form in forms if form.startswith("\0"))
    kept: list[str] = []
    seen: set[str] = set()
    at = 0
    while at < len(lines):
        form, run = forms[at], 1
        while at + run < len(lines) and forms[at + run] == form:
            run += 1
        if form not in seen:
            count = max(logged[form], run)
            remark = f" [{count} times]" if form else ""
            if count < _MIN_SAME or (count - 1) * (len(lines[at]) + 1) <= len(remark):
                kept.extend(lines[at : at + run])
            else:
                kept.append(lines[at] + remark)
                if logged[form] == count:
                    seen.add(form)
        at += run
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
    lines = text.split("\n")
    kept: list[str] = []
    at = 0
    while at < len(lines):
        form, run = _numberless(lines[at]), 1
        while form and at + run < len(lines) and _numberless(lines[at + run]) == form:
            run += 1
        middle = lines[at + _ALIKE_HEAD : at + run - 1]
        remark = f"[… {len(middle)} lines like these]"
        if run < _MIN_ALIKE or sum(map(len, middle)) + len(middle) <= len(remark) + 1:
            kept.extend(lines[at : at + run])
        else:
            kept.extend([*lines[at : at + _ALIKE_HEAD], remark, lines[at + run - 1]])
        at += run
    return "\n".join(kept)


def _numberless(line: str) -> str | None:
    if not _NUMBER.search(line) or _TELLING.search(line):
        return None
    return _NUMBER.sub("#", line)
