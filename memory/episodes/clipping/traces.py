"""Stack traces of Python, Java, JavaScript and Go: of equal ones the first is kept, with the count."""

import re
from collections import Counter
from typing import Final

from policies.patterns import read_patterns

_PATTERNS = read_patterns(__file__)
_TRACE: Final = re.compile(_PATTERNS["trace"], re.MULTILINE)
_VARYING: Final = re.compile(_PATTERNS["varying"])


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
