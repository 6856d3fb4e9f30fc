"""Replaces binary data, encoded blocks, hex dumps and very long lines with a remark of their size."""

import re
from collections.abc import Callable
from itertools import groupby
from typing import Final

from policies.patterns import read_patterns

MAX_LINE_CHARS: Final = 2000
_HEAD_CHARS = 1200
_TAIL_CHARS = 400

_DATA_URI: Final = re.compile(r"(data:[\w.+/\-]{1,80};base64,)([A-Za-z0-9+/=_\-]{64,})")
_ENCODED: Final = re.compile(r"(?<![A-Za-z0-9+/=_\-])[A-Za-z0-9+/_\-]{160,}={0,2}")
_HEX: Final = re.compile(r"(?<![A-Za-z0-9])(?:0x)?[0-9a-fA-F]{129,}(?![A-Za-z0-9])")
_ENCODED_LINE: Final = re.compile(r"^\s{0,16}[A-Za-z0-9+/]{56,160}={0,2}\s{0,4}$")
_LAST_LINE: Final = re.compile(r"^\s{0,16}[A-Za-z0-9+/]{1,160}={0,2}\s{0,4}$")
_PATTERNS = read_patterns(__file__)
_DUMP_LINE: Final = re.compile(_PATTERNS["dump_line"])
_UNREADABLE: Final = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
_MIN_BLOCK_LINES = 3
_UNREADABLE_SHARE = 10
"""A line with more than one unreadable character in this many is binary."""


def drop_blobs(text: str) -> str:
    """Replace data with remarks. Call it before control characters are removed."""
    if "base64," in text:
        text = _DATA_URI.sub(lambda match: f"{match[1]}{_remark(len(match[2]), 'data')}", text)
    text = _ENCODED.sub(_named_if_encoded, text)
    text = _HEX.sub(lambda match: _remark(len(match[0]), "hexadecimal"), text)
    text = _drop_lines(text, is_encoded_line, "encoded data")
    text = _drop_lines(text, lambda line: bool(_DUMP_LINE.match(line)), "a hex dump")
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


def is_encoded_line(line: str) -> bool:
    """Return whether a line is one of a block of Base64."""
    return bool(_ENCODED_LINE.match(line)) and _is_mixed(line)


def _drop_lines(text: str, fits: Callable[[str], bool], what: str) -> str:
    """Replace each run of at least three matching lines with one remark."""
    kept: list[str] = []
    runs = [(is_fit, list(run)) for is_fit, run in groupby(text.split("\n"), fits)]
    for (is_fit, run), (_, after) in zip(runs, [*runs[1:], (False, [])], strict=True):
        if not is_fit or len(run) < _MIN_BLOCK_LINES:
            kept += run
            continue
        if after and _ends_block(after[0], what):
            run.append(after.pop(0))
        kept.append(_remark(len("\n".join(run)), what))
    return "\n".join(kept)


def _ends_block(line: str, what: str) -> bool:
    ends = line.rstrip().endswith("=") or any(map(str.isdigit, line))
    return what == "encoded data" and bool(_LAST_LINE.match(line)) and ends


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
