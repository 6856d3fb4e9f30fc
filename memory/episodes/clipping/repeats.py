"""Stack traces and log lines that come again and again: the first stays, with how often it came.

The traces are those of Python, Java, JavaScript and Go.
"""

import re
from collections import Counter
from itertools import groupby
from operator import itemgetter
from typing import Final

_PLACE = r".+\n[ \t]{1,8}\S{1,500}:\d{1,7}(?: \+0x[0-9a-f]{1,16})?$"
_TRACE: Final = re.compile(
    r"^(?P<indent>[ \t]{0,16}(?:[|+\-] {0,4}){0,4})Traceback \(most recent call last\):"
    r"(?P<python>(?:\n(?P=indent)  (?=.*\S).*)+)(?:\n.*\S.*)?"
    r"|^(?=.*\S).*(?P<at>\n[ \t]{1,16}at \S.*(?:\n[ \t]{0,16}(?:at \S|\.\.\. \d{1,5} "
    "|Caused by: |Suppressed: ).*)*)"
    rf"|^goroutine \d{{1,12}} \[[^\]\n]{{1,100}}\]:(?P<go>(?:\n{_PLACE})+)",
    re.MULTILINE,
)
_VARYING: Final = re.compile(
    r"0x[0-9a-fA-F]+|@[0-9a-f]{6,8}\b|\d{4}-\d\d-\d\d[T ][\d:.,]+Z?",
)
_STAMP: Final = re.compile(
    r"\[?\b\d{4}[-/年]\d{1,2}[-/月]\d{1,2}日?[T ]?(?:\d{1,2}[:：]\d{2}(?:[:：]\d{2}"
    r"(?:[.,]\d{1,9})?)?)?(?:Z|[+-]\d{2}:?\d{2})?\]?"
    r"|\b[A-Z][a-z]{2}\s{1,2}\d{1,2} \d{2}:\d{2}:\d{2}\b"
    r"|\b\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?\b",
)
_LEVEL: Final = re.compile(
    "(?<![A-Za-z])(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL"
    "|CRITICAL)(?![A-Za-z])"
    r"|[\[【](?:调试|信息|警告|错误|严重)[\]】]|^(?:npm (?:ERR!|WARN|warn|error)"
    "|warning[: ])",
)
_CHANCE: Final = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
    r"|\b0x[0-9a-fA-F]{4,16}\b"
    r"|\b\d+(?:\.\d+)?\s?(?:ms|µs|us|ns|s|sec|seconds|毫秒|秒)(?![A-Za-z])"
    r"|(?<=pid=)\d+|(?<=pid )\d+",
)
_MIN_SAME = 3


def drop_repeated_traces(text: str) -> str:
    """Keep the first of the stack traces with equal frames, and what it ends in, with the count."""
    counts = Counter(map(_frames, _TRACE.finditer(text)))
    seen: set[str] = set()

    def replaced(trace: re.Match[str]) -> str:
        frames = _frames(trace)
        if frames in seen:
            return ""
        seen.add(frames)
        count = counts[frames]
        return trace[0] if count == 1 else f"{trace[0]}\n[this stack trace came {count} times]"

    return _TRACE.sub(replaced, text)


def _frames(trace: re.Match[str]) -> str:
    """Return the frames, without what differs from time to time."""
    return _VARYING.sub("#", trace["python"] or trace["at"] or trace["go"])


def drop_repeated_lines(text: str) -> str:
    """Leave out log lines that were there before, and equal lines that follow one another.

    Lines are equal if they differ in time and chance alone.
    """
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
