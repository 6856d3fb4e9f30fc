"""Bound how deep JSON text is nested, before a recursive parser reads it."""

import re

TOO_DEEP = '"[nested too deep]"'
"""The JSON text that stands in place of what is cut out."""

# Strings always match, closed or not, so that a text of quotes takes no longer than another.
_MARKS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def depth_of(text: str) -> int:
    """Return how deep brackets are nested outside of strings."""
    depth = deepest = 0
    for found in _MARKS.finditer(text):
        mark = found[0]
        depth += mark in "[{"
        depth -= mark in "]}"
        deepest = max(deepest, depth)
    return deepest


def bound_depth(text: str, limit: int) -> str:
    """Return JSON text with every container below `limit` levels replaced by `TOO_DEEP`."""
    if text.count("[") + text.count("{") <= limit:
        return text
    kept: list[str] = []
    depth = taken = 0
    for found in _MARKS.finditer(text):
        mark = found[0]
        if mark in "[{":
            depth += 1
            if depth == limit + 1:
                kept += [text[taken : found.start()], TOO_DEEP]
        elif mark in "]}":
            depth -= 1
            if depth == limit:
                taken = found.end()
    if depth > limit:  # never closed
        taken = len(text)
    return "".join([*kept, text[taken:]])
