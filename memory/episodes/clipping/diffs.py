"""Replaces diffs with the names of the changed files and the numbers of lines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from policies.patterns import read_patterns

_PATTERNS = read_patterns(__file__)
_GIT: Final = re.compile(_PATTERNS["git"])
_OLD: Final = re.compile(r"^--- (?:a/)?(?P<old>[^\t\n]{1,500})")
_NEW: Final = re.compile(r"^\+\+\+ (?:b/)?(?P<new>[^\t\n]{1,500})")
_HUNK: Final = re.compile(_PATTERNS["hunk"])
_HEADER: Final = re.compile(_PATTERNS["header"])
_BINARY_PATCH = "GIT binary patch"
_BINARY_BLOCK: Final = re.compile(r"^(?:literal|delta) \d+$")
_MAX_FILES = 10


@dataclass(slots=True)
class _Changed:
    name: str
    added: int = 0
    removed: int = 0

    def __str__(self) -> str:
        return f"{self.name} +{self.added} -{self.removed}"


def drop_diffs(text: str) -> str:
    """Replace each diff with the files that it changes and how many lines."""
    if "\n@@ " not in text and "diff --" not in text:
        return text
    lines, kept, at = text.split("\n"), list[str](), 0
    while at < len(lines):
        end, files = _read_diff(lines, at)
        if end == at:
            kept.append(lines[at])
            at += 1
            continue
        remark = _remark(files)
        whole = "\n".join(lines[at:end])
        kept.append(remark if len(remark) < len(whole) else whole)
        at = end
    return "\n".join(kept)


def _remark(files: Sequence[_Changed]) -> str:
    named = ", ".join(str(file) for file in files[:_MAX_FILES])
    more = f" and {len(files) - _MAX_FILES} more files" if len(files) > _MAX_FILES else ""
    return f"[diff left out: {named}{more}]"


def _read_diff(lines: Sequence[str], at: int) -> tuple[int, list[_Changed]]:
    """Read the files of a diff from `at` on; return its end and the files."""
    files: list[_Changed] = []
    while at < len(lines):
        end, changed = _read_file(lines, at)
        if changed is None:
            break
        files.append(changed)
        at = end
    return at, files


def _read_file(lines: Sequence[str], begin: int) -> tuple[int, _Changed | None]:
    at, named = begin, _GIT.match(lines[begin])
    name = named["new"] or named["old"] if named else ""
    if named:
        at += 1
        while at < len(lines) and _HEADER.match(lines[at]):
            at += 1
        if lines[at : at + 1] == [_BINARY_PATCH]:
            return _end_of_binary(lines, at), _Changed(name.strip())
    old, new, hunk = (*lines[at : at + 3], "", "", "")[:3]
    if (was := _OLD.match(old)) and (now := _NEW.match(new)):
        if not _HUNK.match(hunk):
            return begin, None
        name = name or (was["old"] if now["new"] == "/dev/null" else now["new"])
        at += 2
    elif not named:
        return begin, None
    return _read_hunks(lines, at, _Changed(name.strip()))


def _end_of_binary(lines: Sequence[str], at: int) -> int:
    """Return the line after the encoded blocks, each of which ends in an empty line."""
    at += 1
    while at < len(lines) and _BINARY_BLOCK.match(lines[at]):
        while at < len(lines) and lines[at].strip():
            at += 1
        at += 1
    return min(at, len(lines))


def _read_hunks(lines: Sequence[str], at: int, changed: _Changed) -> tuple[int, _Changed]:
    while at < len(lines) and (hunk := _HUNK.match(lines[at])):
        old, new = int(hunk["old"] or 1), int(hunk["new"] or 1)
        at += 1
        while at < len(lines) and not _HUNK.match(lines[at]):
            mark = lines[at][:1]
            # the header may count too few lines: what goes on like a diff belongs to it
            if mark not in {"+", "-", " ", "\\"} and (mark or (old <= 0 and new <= 0)):
                break
            changed.added += mark == "+"
            changed.removed += mark == "-"
            old -= mark in {"-", " ", ""}
            new -= mark in {"+", " ", ""}
            at += 1
    return at, changed
