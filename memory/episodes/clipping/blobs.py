"""Replaces binary data, encoded blocks, hex dumps and very long lines with their size."""

import re
from itertools import groupby
from typing import Final

MAX_LINE_CHARS: Final = 2000
_HEAD_CHARS = 1200
_TAIL_CHARS = 400

_DATA_URI: Final = re.compile(r"(data:[\w.+/\-]{1,80};base64,)([A-Za-z0-9+/=_\-]{64,})")
_ENCODED: Final = re.compile(r"(?<![A-Za-z0-9+/=_\-])[A-Za-z0-9+/_\-]{160,}={0,2}")
_HEX: Final = re.compile(r"(?<![A-Za-z0-9])(?:0x)?[0-9a-fA-F]{129,}(?![A-Za-z0-9])")
_DUMP_LINE = (
    r"[ \t]{0,8}(?:0x)?[0-9a-fA-F]{4,16}[: \t][ \t]{0,4}"
    r"(?:[0-9a-fA-F]{2}(?:[0-9a-fA-F]{2})?[ \t]{1,3}){4,}+.*+"
)
# At least three lines, and a shorter last one.
_ENCODED_BLOCK: Final = re.compile(
    r"^[ \t]{0,16}[A-Za-z0-9+/]{56,160}={0,2}[ \t]{0,4}"
    r"(?:\n[ \t]{0,16}[A-Za-z0-9+/]{56,160}={0,2}[ \t]{0,4}$){2,}"
    r"(?:\n(?=.*[=\d])[ \t]{0,16}[A-Za-z0-9+/]{1,160}={0,2}[ \t]{0,4}$)?",
    re.MULTILINE,
)
_DUMP: Final = re.compile(
    rf"^{_DUMP_LINE}(?:\n{_DUMP_LINE}){{2,}}",
    re.MULTILINE,
)
_UNREADABLE: Final = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
_UNREADABLE_SHARE = 10
"""A line with more than one unreadable character in this many is binary."""


def drop_blobs(text: str) -> str:
    """Replace data with remarks. Call it before control characters are removed."""
    if "base64," in text:
        text = _DATA_URI.sub(lambda match: f"{match[1]}{_remark(len(match[2]), 'data')}", text)
    text = _ENCODED.sub(_named_if_encoded, text)
    text = _HEX.sub(lambda match: _remark(len(match[0]), "hexadecimal"), text)
    text = _ENCODED_BLOCK.sub(_named_if_encoded, text)
    text = _DUMP.sub(lambda match: _remark(len(match[0]), "a hex dump"), text)
    text = _drop_binary(text)
    return "\n".join(_shortened(line) for line in text.split("\n"))


def _remark(chars: int, what: str) -> str:
    return f"[{chars} characters of {what}]"


def _named_if_encoded(match: re.Match[str]) -> str:
    run = match[0]
    return _remark(len(run), "encoded data") if _is_mixed(run) else run


def _is_mixed(run: str) -> bool:
    """Return whether a run looks random; paths and rulers do not."""
    classes = (any(map(str.isupper, run)), any(map(str.islower, run)), any(map(str.isdigit, run)))
    separators = sum(map(run.count, "/-_+"))
    return all(classes) and separators * 10 < len(run)


def _drop_binary(text: str) -> str:
    if not _UNREADABLE.search(text):
        return text
    kept: list[str] = []
    for is_binary, run in groupby(text.split("\n"), _is_binary):
        lines = "\n".join(run)
        remark = _remark(len(lines) + 1, "binary")
        kept.append(remark if is_binary and len(remark) < len(lines) else lines)
    return "\n".join(kept)


def _is_binary(line: str) -> bool:
    return len(_UNREADABLE.findall(line)) * _UNREADABLE_SHARE > len(line)


def _shortened(line: str) -> str:
    if len(line) <= MAX_LINE_CHARS:
        return line
    left_out = len(line) - _HEAD_CHARS - _TAIL_CHARS
    return f"{line[:_HEAD_CHARS]} [… {left_out} characters …] {line[-_TAIL_CHARS:]}"
