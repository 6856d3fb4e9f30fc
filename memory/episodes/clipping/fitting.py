"""Shortens a text to its head, its lines with errors and conclusions, and its tail."""

import re
from collections.abc import Sequence
from typing import Final

_TELLING: Final = re.compile(
    r"\b(?:error|errors|failed|failure|fatal|exception|panic|denied|refused|not found"
    "|cannot|can't"
    r"|timed out|traceback|assert\w*|undefined|unresolved)\b|\b\w+(?:Error|Exception)\b"
    r"|npm ERR!|^E\s{2,}|错误|失败|异常|拒绝|超时|找不到|未找到|无法|不存在",
    re.IGNORECASE,
)
# Lines that sum an output up, in the words of common tools.
_CONCLUSION: Final = re.compile(
    r"(?<!=)={3,}+.{0,200}?\b(?:passed|failed|error|errors)\b.{0,200}?={3}"
    r"|\b\d+ (?:passed|failed|errors?"
    r"|passing|failing)\b"
    r"|\bBUILD (?:SUCCESS|FAILED|FAILURE|SUCCESSFUL)|\bSuccessfully (?:built|tagged"
    r"|installed)\b|\bTests?(?: run)?:\s|\bexit (?:code|status) \d+|\b(?:added|removed"
    r"|audited) \d+ packages\b"
    r"|^(?:FAIL|ok|PASS|FAILED|OK)\b|构建(?:成功|失败)|测试(?:通过|失败)|共\s?\d+\s?个"
    "|结论",
)

_HEAD_SHARE = 0.3
_TELLING_SHARE = 0.35
_MARK_CHARS = 40
"""Room for the remark on what was left out."""


def fit(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text, at least 200."""
    if len(text) <= limit:
        return text
    lines = text.split("\n")
    chosen = _choose(lines, limit)
    fitted = _joined(lines, chosen)
    return fitted if chosen and len(fitted) <= limit else _cut(text, limit)


def _choose(lines: Sequence[str], limit: int) -> list[int]:
    """Choose lines by place: head, tail, and between them conclusions before errors, last first."""
    room = limit - 2 * _MARK_CHARS
    head = _taken(lines, range(len(lines)), int(room * _HEAD_SHARE))
    rest = range(len(lines) - 1, len(head) - 1, -1)
    tail_share = 1 - _HEAD_SHARE - _TELLING_SHARE
    tail = _taken(lines, rest, int(room * tail_share))
    between = range(len(lines) - len(tail) - 1, len(head) - 1, -1)
    conclusions = _places(_CONCLUSION, lines, between)
    errors = [at for at in _places(_TELLING, lines, between) if at not in set(conclusions)]
    # the first error is often the cause, the last ones what is left of it
    ordered = conclusions + errors[-1:] + errors[:-1]
    spare = room - sum(len(lines[at]) + 1 for at in [*head, *tail])
    return sorted({*head, *tail, *_fitting(lines, ordered, spare)})


def _places(pattern: re.Pattern[str], lines: Sequence[str], places: range) -> list[int]:
    return [at for at in places if pattern.search(lines[at][:500])]


def _fitting(lines: Sequence[str], places: Sequence[int], room: int) -> list[int]:
    """Return the places whose lines fit, with a remark each, earlier ones first."""
    fitting: list[int] = []
    for at in dict.fromkeys(places):
        cost = len(lines[at]) + 1 + _MARK_CHARS
        if cost <= room:
            fitting.append(at)
            room -= cost
    return fitting


def _taken(lines: Sequence[str], places: range, room: int) -> list[int]:
    taken: list[int] = []
    for at in places:
        room -= len(lines[at]) + 1
        if room < 0:
            break
        taken.append(at)
    return taken


def _joined(lines: Sequence[str], chosen: Sequence[int]) -> str:
    parts: list[str] = []
    expected = 0
    for at in [*chosen, len(lines)]:
        if at > expected:
            parts.append(f"[… {at - expected} lines left out …]")
        if at < len(lines):
            parts.append(lines[at])
        expected = at + 1
    return "\n".join(parts)


def _cut(text: str, limit: int) -> str:
    """Cut within a line, where lines are longer than the bound."""
    room = limit - _MARK_CHARS
    head = room * 2 // 3
    tail = room - head
    return f"{text[:head]} [… {len(text) - room} characters …] {text[-tail:]}"
