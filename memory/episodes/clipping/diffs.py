"""Replaces diffs with the names of the changed files and the numbers of lines.

The line counts in the head of a hunk are not read: people and models write them wrong.
"""

import re
from typing import Final

_NAMES: Final = (
    r"--- (?:a/)?(?P<old>[^\t\n]{1,500}+).*+\n\+\+\+ (?:b/)?(?P<new>[^\t\n]{1,500}+).*+\n"
)

_GIT_HEADER: Final = (
    r"diff --(?:.* )?(?:b/)?(?P<name>\S{1,500})\n"
    r"(?:(?:index [0-9a-f,.]+|old mode|new mode|new file mode|deleted file mode|similarity index"
    r"|dissimilarity index|rename (?:from|to)|copy (?:from|to)|Binary files .* differ|={20,}$)"
    r".*\n)*"
    r"(?:GIT binary patch\n(?:(?:literal|delta) \d+\n(?:.+\n)*\n?)*)?"
)

# An empty line belongs to a hunk that goes on after it.
_LINES: Final = r"(?:[-+ \\].*\n|\n(?=[-+ \\]))*"

# One file: its header, if it has one, and its hunks.
_FILE_TEXT: Final = (
    r"(?=^diff --(?:git|cc|combined) |^--- .*\n\+\+\+ .*\n@@)"
    rf"(?:{_GIT_HEADER})?(?:{_NAMES})?(?P<hunks>(?:@@.*@@.*\n{_LINES})*)"
)

# Hunks of which no header says the file; only the usual form of a head, so that no other text is
# taken.
_BARE_TEXT: Final = (
    rf"(?:^@@ -\d{{1,9}}(?:,\d{{1,9}})? \+\d{{1,9}}(?:,\d{{1,9}})? @@.*\n(?=[-+ \\]){_LINES})+"
)

_FILE: Final = re.compile(_FILE_TEXT, re.MULTILINE)
_BARE: Final = re.compile(_BARE_TEXT, re.MULTILINE)
_DIFF: Final = re.compile(rf"(?:{re.sub('[?]P<[a-z]+>', '?:', _FILE_TEXT)})+", re.MULTILINE)

# A fenced block that says that it is a diff: what is in it is one, with or without heads of hunks.
_FENCE: Final = re.compile(
    r"^(?P<open> {0,3}(?P<fence>`{3,16}|~{3,16}) ?(?:diff|patch)\b.*\n)"
    r"(?P<body>(?:(?! {0,3}(?P=fence)).*\n)+)",
    re.MULTILINE,
)
_HEADER_NAMES: Final = re.compile(f"^{_NAMES}", re.MULTILINE)
_SIGN: Final = re.compile(r"^[-+]", re.MULTILINE)
_MAX_FILES = 10


def drop_diffs(text: str) -> str:
    """Replace each diff with the files that it changes, if it names them, and how many lines."""
    text = f"{text}\n"
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(_fenced, text)
    if "@@ " in text or "diff --" in text:
        text = _BARE.sub(_unnamed, _DIFF.sub(_named, text))
    return text[:-1]


def _fenced(block: re.Match[str]) -> str:
    body = block["body"]
    if not _SIGN.search(body):
        return block[0]
    remark = _files_of(body) if _FILE.search(body) else _unnamed_files_of(body)
    return block["open"] + _shorter(remark, body)


def _named(diff: re.Match[str]) -> str:
    return _shorter(_files_of(diff[0]), diff[0])


def _unnamed(hunks: re.Match[str]) -> str:
    return _shorter(_unnamed_files_of(hunks[0]), hunks[0])


def _files_of(diff: str) -> str:
    files = [_changed(file) for file in _FILE.finditer(diff)]
    more = f" and {len(files) - _MAX_FILES} more files" if len(files) > _MAX_FILES else ""
    return f"{', '.join(files[:_MAX_FILES])}{more}"


def _changed(file: re.Match[str]) -> str:
    names = (file["name"], file["new"], file["old"])
    return f"{_first_name(*names)} {_counts(file['hunks'])}"


def _unnamed_files_of(diff: str) -> str:
    """Return the counts of a diff whose hunks have no header, after a name that stands alone."""
    header = _HEADER_NAMES.search(diff)
    name = f"{_first_name(header['new'], header['old'])} " if header else ""
    return f"{name}{_counts(_HEADER_NAMES.sub('', diff))}"


def _first_name(*names: str | None) -> str:
    return next((name.strip() for name in names if name and name != "/dev/null"), "/dev/null")


def _counts(lines: str) -> str:
    signs = _SIGN.findall(lines)
    return f"+{signs.count('+')} -{signs.count('-')}"


def _shorter(remark: str, diff: str) -> str:
    remark = f"[diff left out: {remark}]\n"
    return remark if len(remark) < len(diff) else diff
