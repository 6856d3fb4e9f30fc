"""Unified diffs of texts, in bounded time."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from itertools import accumulate, takewhile
from operator import eq
from typing import Final

_CONTEXT: Final = 3
_MAX_CELLS: Final = 4_000_000
"""Changed middles with more pairs of lines than this are shown as replaced whole."""
_MAX_STEPS: Final = 5_000_000
"""Of one comparison, some seconds. It may take the third power of the number of lines: those of a
text whose lines all differ but every second one, which is empty."""
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
    part = slice(max(0, head - _CONTEXT), -max(0, tail - _CONTEXT) or None)
    rows = None
    if (len(old) - tail - head) * (end - head) <= _MAX_CELLS:
        rows = _compared(old[part], new[part], part.start)
    if rows is None:
        new[head:end] = [f"{line}{_UNEQUAL}" for line in new[head:end]]
        matcher = SequenceMatcher(None, old[part], new[part], autojunk=False)
        rows = list(_hunks(matcher, old[part], new[part], part.start))
    return LineDiff(
        "".join(f"{line}\n" for row in rows for line in _shown(row)),
        added=sum(row.startswith("+") for row in rows),
        removed=sum(row.startswith("-") for row in rows),
    )


def _count_equal(old: Sequence[str], new: Sequence[str]) -> int:
    return sum(takewhile(bool, map(eq, old, new)))


class _TooManySteps(Exception):
    """A comparison was given up."""


class _Matcher(SequenceMatcher[str]):
    """Compares in a bounded number of steps; raises `_TooManySteps`."""

    b2j: Mapping[str, Sequence[int]]
    """Where each line of `b` stands; set by the class above."""

    def __init__(self, a: Sequence[str], b: Sequence[str], *, autojunk: bool) -> None:
        super().__init__(None, a, b, autojunk=autojunk)
        steps = (1 + len(self.b2j.get(line, ())) for line in a)
        self._steps_before = [0, *accumulate(steps)]
        self._left = _MAX_STEPS

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        end = -1 if ahi is None else ahi
        self._left -= self._steps_before[end] - self._steps_before[alo]
        if self._left < 0:
            raise _TooManySteps
        return super().find_longest_match(alo, ahi, blo, bhi)


def _compared(old: Sequence[str], new: Sequence[str], start: int) -> list[str] | None:
    """Return the rows of a diff; None if it takes too long also where lines that come often are
    only looked at beside others.
    """
    for has_junk in (False, True):
        with suppress(_TooManySteps):
            return list(_hunks(_Matcher(old, new, autojunk=has_junk), old, new, start))
    return None


def _hunks(
    matcher: SequenceMatcher[str], a: Sequence[str], b: Sequence[str], start: int
) -> Iterator[str]:
    """Yield the rows of a diff of lines, before which `start` lines were left out."""
    for group in matcher.get_grouped_opcodes(_CONTEXT):
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
