"""Blocks of Markdown that have no end of their own: a code fence, a comment and the like. Pure.

A text that leaves one open, such as a reply that was cut off, would take in whatever follows it.
"""

import re

_FENCE = re.compile(r"( {0,3})(?:(`{3,})[^`]*|(~{3,}).*)$")
"""Its indentation and its marks; behind backticks there is no other one in the line."""
_HTML = (
    (re.compile(r" {0,3}<(?:script|pre|style|textarea)(?:[\s>]|$)", re.IGNORECASE), "</pre>"),
    (re.compile(r" {0,3}<!--"), "-->"),
    (re.compile(r" {0,3}<\?"), "?>"),
    (re.compile(r" {0,3}<!\[CDATA\["), "]]>"),
    (re.compile(r" {0,3}<![A-Za-z]"), ">"),
)
"""How HTML begins that goes on over empty lines, and an end of it."""
_TAG_ENDS = ("</script>", "</pre>", "</style>", "</textarea>")
"""Each of them ends a block that any of the four tags began."""


def closed(text: str) -> str:
    """Return a text with the end of the block that it leaves open, if it does."""
    end = ""
    for line in text.split("\n"):
        if not end:
            end = _opened(line)
        elif end[-1] in "`~":
            marks = line.strip()
            is_end = marks.startswith(end.strip()) and not marks.strip(end[-1])
            end = "" if is_end and not line.startswith("    ") else end
        elif _ends_html(line, end):
            end = ""
    return f"{text}\n{end}" if end else text


def _opened(line: str) -> str:
    """Return the end of the block that a line leaves open; empty if none."""
    if fence := _FENCE.match(line):
        indent, backticks, tildes = fence.groups()
        return indent + (backticks or tildes)
    for begin, end in _HTML:
        if found := begin.match(line):
            return "" if _ends_html(line[found.end() :], end) else end
    return ""


def _ends_html(line: str, end: str) -> bool:
    ends = _TAG_ENDS if end in _TAG_ENDS else (end,)
    return any(end in line.lower() for end in ends)
