"""Stack traces of Python, Java, JavaScript and Go: the first is kept, with what it ends in and the count.

Where the same way through the code ends in other words, the first few of these stay. Of a long trace the
middle is left out: where it began, where it broke and the conclusion stay.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from policies.patterns import read_patterns

_PATTERNS = read_patterns(__file__)
_PYTHON: Final = re.compile(_PATTERNS["python"])
_AT: Final = re.compile(r"^\s{1,16}at \S")
_AT_MORE: Final = re.compile(_PATTERNS["at_more"])
_GO: Final = re.compile(r"^goroutine \d{1,12} \[[^\]]{1,100}\]:")
_GO_PLACE: Final = re.compile(r"^\s{1,8}\S{1,500}:\d{1,7}(?: \+0x[0-9a-f]{1,16})?$")
_VARYING: Final = re.compile(_PATTERNS["varying"])
_CAUSE: Final = re.compile(r"^\s{0,16}(?:Caused by|Suppressed): ")

_HEAD_FRAMES = 8
_TAIL_FRAMES = 6
_MIN_LEFT_OUT = 4
_MORE_ENDINGS = 3


@dataclass(frozen=True, slots=True)
class _Trace:
    begin: int
    end: int
    first_frame: int
    last_frame: int
    """One behind the last line that is a frame."""
    concluded_at: int | None
    """The line that says what went wrong; None where no line of the trace does."""

    def way(self, lines: Sequence[str]) -> str:
        """The frames alone, without what differs from time to time."""
        frames = lines[self.first_frame : self.last_frame]
        return _VARYING.sub("#", "\n".join(line.strip() for line in frames))

    def conclusion(self, lines: Sequence[str]) -> str:
        return "" if self.concluded_at is None else lines[self.concluded_at].strip()


def drop_repeated_traces(text: str) -> str:
    """Keep the first of equal stack traces with the count, and the ends of long ones."""
    lines = text.split("\n")
    traces = list(_traces(lines))
    if not traces:
        return text
    counts = Counter(trace.way(lines) for trace in traces)
    endings: dict[str, list[str]] = {}
    kept: list[str] = []
    at = 0
    for trace in traces:
        kept.extend(lines[at : trace.begin])
        at = trace.end
        way, conclusion = trace.way(lines), _VARYING.sub("#", trace.conclusion(lines))
        seen = endings.get(way)
        if seen is None:
            endings[way] = [conclusion]
            kept.extend(_shortened(lines, trace))
            if counts[way] > 1:
                kept.append(f"[this stack trace came {counts[way]} times]")
        elif conclusion not in seen and len(seen) <= _MORE_ENDINGS:
            seen.append(conclusion)
            kept.append(f"[the same stack trace] {trace.conclusion(lines)}")
    kept.extend(lines[at:])
    return "\n".join(kept)


def _shortened(lines: Sequence[str], trace: _Trace) -> list[str]:
    frames = list(lines[trace.first_frame : trace.last_frame])
    left_out = len(frames) - _HEAD_FRAMES - _TAIL_FRAMES
    if left_out >= _MIN_LEFT_OUT:
        middle = frames[_HEAD_FRAMES:-_TAIL_FRAMES]
        causes = [line for line in middle if _CAUSE.match(line)]
        frames[_HEAD_FRAMES:-_TAIL_FRAMES] = [*causes, f"    [… {left_out - len(causes)} frames …]"]
    return [
        *lines[trace.begin : trace.first_frame],
        *frames,
        *lines[trace.last_frame : trace.end],
    ]


def _traces(lines: Sequence[str]) -> Iterator[_Trace]:
    at = 0
    while at < len(lines):
        found = _python(lines, at) or _go(lines, at) or _at_frames(lines, at)
        if found is None:
            at += 1
            continue
        yield found
        at = found.end


def _python(lines: Sequence[str], at: int) -> _Trace | None:
    begun = _PYTHON.match(lines[at])
    if begun is None:
        return None
    indent = begun["indent"]
    end = at + 1
    while end < len(lines) and _is_inside(lines[end], indent):
        end += 1
    conclusion = end < len(lines) and bool(lines[end].strip())
    return _Trace(at, end + conclusion, at + 1, end, end if conclusion else None)


def _is_inside(line: str, indent: str) -> bool:
    rest = line.removeprefix(indent)
    return rest.startswith("  ") and bool(rest.strip())


def _at_frames(lines: Sequence[str], at: int) -> _Trace | None:
    """A line of what went wrong, and lines that begin with `at` below it."""
    if at + 1 >= len(lines) or not lines[at].strip() or not _AT.match(lines[at + 1]):
        return None
    end = at + 1
    while end < len(lines) and (_AT.match(lines[end]) or _AT_MORE.match(lines[end])):
        end += 1
    return _Trace(at, end, at + 1, end, at)


def _go(lines: Sequence[str], at: int) -> _Trace | None:
    if not _GO.match(lines[at]):
        return None
    end = at + 1
    while end < len(lines) and (
        _GO_PLACE.match(lines[end]) or (end + 1 < len(lines) and _GO_PLACE.match(lines[end + 1]))
    ):
        end += 1
    return _Trace(at, end, at + 1, end, None)
