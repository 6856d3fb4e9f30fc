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
    at, name, told = begin, "", False
    while at < len(lines):
        line = lines[at]
        named = _GIT.match(line)
        if named and at > begin:
            break
        if named:
            name, told = named["new"] or named["old"], True
        elif told and _HEADER.match(line):
            pass
        elif told and line == _BINARY_PATCH:
            return _end_of_binary(lines, at), _Changed(name.strip())
        elif _OLD.match(line) and at + 1 < len(lines) and (new := _NEW.match(lines[at + 1])):
            old = _OLD.match(line)
            assert old is not None, "it was matched just now"
            name = name or (old["old"] if new["new"] == "/dev/null" else new["new"])
            at += 1
            told = at + 1 < len(lines) and bool(_HUNK.match(lines[at + 1]))
            at += 1
            break
        else:
            break
        at += 1
    if not told:
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
        while at < len(lines) and (old > 0 or new > 0):
            mark = lines[at][:1]
            if mark not in {"+", "-", " ", "\\", ""} or _HUNK.match(lines[at]):
                break
            changed.added += mark == "+"
            changed.removed += mark == "-"
            old -= mark in {"-", " ", ""}
            new -= mark in {"+", " ", ""}
            at += 1
        # the header may count too few lines: what goes on like a diff belongs to it
        while at < len(lines) and lines[at][:1] in {"+", "-", " ", "\\"}:
            changed.added += lines[at][:1] == "+"
            changed.removed += lines[at][:1] == "-"
            at += 1
    return at, changed
