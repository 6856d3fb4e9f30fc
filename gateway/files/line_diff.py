"""Unified diffs of texts, in bounded time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from operator import eq
from typing import Final

_CONTEXT: Final = 3
_MAX_CELLS: Final = 4_000_000
"""Changed middles with more pairs of lines than this are shown as replaced whole."""
_MAX_LINE_CHARS: Final = 1_000
_NO_END: Final = "\\ No newline at end of file"
_UNEQUAL: Final = "\0"
"""Ends lines that must equal no others; a text that holds it is not compared."""


@dataclass(frozen=True, slots=True)
class LineDiff:
    """The difference of two texts."""

    text: str
    """The hunks of a unified diff, without the lines that name the files; empty: the texts are
    equal."""
    added: int
    removed: int


def diff_lines(before: str, after: str) -> LineDiff:
    """Compare two texts line by line; equal beginnings and ends are not searched."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    head = _count_equal(old, new)
    tail = _count_equal(old[head:][::-1], new[head:][::-1])
    end = len(new) - tail
    if (len(old) - tail - head) * (end - head) > _MAX_CELLS:
        new[head:end] = [f"{line}{_UNEQUAL}" for line in new[head:end]]
    rows = list(_hunks(old, new, max(0, head - _CONTEXT), max(0, tail - _CONTEXT)))
    return LineDiff(
        "".join(f"{line}\n" for row in rows for line in _shown(row)),
        added=sum(row.startswith("+") for row in rows),
        removed=sum(row.startswith("-") for row in rows),
    )


def _count_equal(old: Sequence[str], new: Sequence[str]) -> int:
    return sum(takewhile(bool, map(eq, old, new)))


def _hunks(old: Sequence[str], new: Sequence[str], start: int, left_out: int) -> Iterator[str]:
    """Yield the rows of a diff that leaves out lines at the start and at the end."""
    a, b = (lines[start : len(lines) - left_out] for lines in (old, new))
    for group in SequenceMatcher(None, a, b, autojunk=False).get_grouped_opcodes(_CONTEXT):
        (_, a_from, _, b_from, _), (_, _, a_to, _, b_to) = group[0], group[-1]
        yield (
            f"@@ -{_range(start + a_from, a_to - a_from)} "
            f"+{_range(start + b_from, b_to - b_from)} @@"
        )
        for tag, a_from, a_to, b_from, b_to in group:
            if tag == "equal":
                yield from (f" {line}" for line in a[a_from:a_to])
                continue
            yield from (f"-{line}" for line in a[a_from:a_to])
            yield from (f"+{line}" for line in b[b_from:b_to])


def _range(start: int, length: int) -> str:
    """Return a hunk's first line and number of lines as `diff -u` writes them."""
    return str(start + 1) if length == 1 else f"{start + bool(length)},{length}"


def _shown(row: str) -> Iterator[str]:
    line = row.removesuffix(_UNEQUAL)
    text = line.rstrip("\r\n")
    yield text if len(text) <= _MAX_LINE_CHARS else f"{text[: _MAX_LINE_CHARS + 1]}…"
    if not line.endswith("\n") and not line.startswith("@@"):
        yield _NO_END
