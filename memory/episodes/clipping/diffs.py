"""Replaces diffs with the names of the changed files and the numbers of lines."""

import re
from typing import Final

from policies.patterns import read_patterns

_PATTERNS = read_patterns(__file__)
_FILE: Final = re.compile(_PATTERNS["file"], re.MULTILINE)
_DIFF: Final = re.compile(rf"(?:{re.sub('[?]P<[a-z]+>', '?:', _PATTERNS['file'])})+", re.MULTILINE)
_SIGN: Final = re.compile(r"^[-+]", re.MULTILINE)
_MAX_FILES = 10


def drop_diffs(text: str) -> str:
    """Replace each diff with the files that it changes and how many lines."""
    return _DIFF.sub(_remark, f"{text}\n")[:-1] if "@@ " in text or "diff --" in text else text


def _remark(diff: re.Match[str]) -> str:
    files = [_changed(file) for file in _FILE.finditer(diff[0])]
    more = f" and {len(files) - _MAX_FILES} more files" if len(files) > _MAX_FILES else ""
    remark = f"[diff left out: {', '.join(files[:_MAX_FILES])}{more}]\n"
    return remark if len(remark) < len(diff[0]) else diff[0]


def _changed(file: re.Match[str]) -> str:
    names = (file["name"], file["new"], file["old"])
    name = next(name for name in names if name and name != "/dev/null")
    signs = _SIGN.findall(file["hunks"])
    return f"{name.strip()} +{signs.count('+')} -{signs.count('-')}"
