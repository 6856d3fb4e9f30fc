"""Unified diffs of texts, in bounded time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

_Opcode = tuple[str, int, int, int, int]

_CONTEXT: Final = 3
_MAX_CELLS: Final = 4_000_000
"""Changed middles with more pairs of lines than this are shown as replaced whole."""
_MAX_LINE_CHARS: Final = 1_000
_NO_END: Final = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class LineDiff:
    """The difference of two texts."""

    text: str
    """The hunks of a unified diff, without the lines that name the files; empty: the texts are equal."""
    added: int
    removed: int


class _Known(SequenceMatcher[str]):
    """Groups opcodes that are known already."""

    def __init__(self, opcodes: list[_Opcode]) -> None:
        super().__init__()
        self._known = opcodes

    def get_opcodes(self) -> list[_Opcode]:  # type: ignore[override]  # the stub names the tags
        """Return the opcodes."""
        return self._known


def diff_lines(before: str, after: str) -> LineDiff:
    """Compare two texts line by line."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    opcodes = _opcodes(old, new)
    changed = [code for code in opcodes if code[0] != "equal"]
    lines: list[str] = []
    if changed:
        for group in _Known(opcodes).get_grouped_opcodes(_CONTEXT):
            lines += _hunk(group, old, new)
    return LineDiff(
        "".join(f"{line}\n" for line in lines),
        added=sum(code[4] - code[3] for code in changed),
        removed=sum(code[2] - code[1] for code in changed),
    )


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[_Opcode]:
    """Return how to make one of the other; equal beginnings and ends are not searched."""
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    left = shorter - head
    tail = next((i for i in range(left) if old[-1 - i] != new[-1 - i]), left)
    old_end, new_end = len(old) - tail, len(new) - tail
    middle = _middle(old[head:old_end], new[head:new_end])
    codes: list[_Opcode] = [("equal", 0, head, 0, head)] if head else []
    codes += [(tag, a + head, b + head, c + head, d + head) for tag, a, b, c, d in middle]
    if tail:
        codes.append(("equal", old_end, len(old), new_end, len(new)))
    return codes


def _middle(old: Sequence[str], new: Sequence[str]) -> Sequence[_Opcode]:
    if len(old) * len(new) > _MAX_CELLS:
        return [("replace", 0, len(old), 0, len(new))]
    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def _hunk(group: Sequence[_Opcode], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    first, last = group[0], group[-1]
    yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
    for tag, old_from, old_to, new_from, new_to in group:
        if tag == "equal":
            yield from _lines(" ", old[old_from:old_to])
            continue
        yield from _lines("-", old[old_from:old_to])
        yield from _lines("+", new[new_from:new_to])


def _range(start: int, stop: int) -> str:
    """Return a hunk's first line and number of lines as `diff -u` writes them."""
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _lines(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        text = line.rstrip("\r\n")
        yield sign + (text if len(text) <= _MAX_LINE_CHARS else f"{text[:_MAX_LINE_CHARS]}…")
        if not line.endswith("\n") and line:
            yield _NO_END
