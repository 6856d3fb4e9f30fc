"""One line of the journal: what a turn hands over, and the JSON that becomes of it.

Everything here runs in the writer's thread: turning objects into JSON, masking, clipping.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from gateway.jsonsafe import json_safe, json_text
from gateway.observability.masking import Mask, mask_leaves, mask_text
from memory.clock import rfc3339

JournalKind = Literal["request", "context", "message", "permission", "tool", "error", "response"]

MAX_LINE_BYTES = 4 * 1024 * 1024
"""A longer line is clipped. Readers rely on no line being longer."""
MIN_CLIP_CHARS = 64
_MASKING_MARGIN_CHARS = 16_384
"""Masked beyond the cut of an oversized string and then dropped, so that no cut halves a secret."""


_LEFT_OUT = re.compile(r"…\[(\d{1,15}) characters left out\]\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What a turn wrote, as it was handed over."""

    at: datetime
    kind: JournalKind
    fields: Mapping[str, Any]
    lost_before: int = 0
    """Lines of the same turn that were refused before this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineForm:
    """How lines become bytes."""

    mask: Mask
    max_bytes: int = MAX_LINE_BYTES


def encode_line(line: Line, seq: int, envelope: Mapping[str, str], form: LineForm) -> bytes:
    """Give the line as UTF-8 JSON with its newline, at most `form.max_bytes` long. Never raises.

    `envelope` comes first and wins: a field of the same name that says something else is kept
    with an underscore behind its name.
    """
    head = {"ts": rfc3339(line.at), "seq": seq, **envelope, "kind": line.kind}
    fields = _masked_fields(line.fields, form)
    rest = {_free_name(key, one, head): one for key, one in fields.items() if head.get(key) != one}
    encoded = _dump({**head, **rest})
    if len(encoded) <= form.max_bytes:
        return encoded
    return _clip(head, rest, form.max_bytes)


def _dump(value: Mapping[str, Any]) -> bytes:
    return json_text(value).encode() + b"\n"


def _free_name(key: str, value: Any, head: Mapping[str, Any]) -> str:
    return f"{key}_" if key in head and head[key] != value else key


def _masked_fields(fields: Mapping[str, Any], form: LineForm) -> dict[str, Any]:
    def mask(text: str) -> str:
        if len(text) <= form.max_bytes + _MASKING_MARGIN_CHARS:
            return form.mask(text)
        cut = mask_text(text[: form.max_bytes + _MASKING_MARGIN_CHARS], form.mask)
        return cut[:-_MASKING_MARGIN_CHARS] + _left_out(len(text) - form.max_bytes)

    masked = mask_leaves(json_safe(fields), mask)
    return masked if isinstance(masked, dict) else {"unreadable": masked}


def _left_out(chars: int) -> str:
    return f"…[{chars} characters left out]"


def _count_chars(text: str) -> int:
    """Count a string's characters, with those that were left out of it before."""
    before = _LEFT_OUT.search(text, max(0, len(text) - 60))
    return len(text) if before is None else before.start() + int(before[1])


def _clip(head: dict[str, Any], rest: dict[str, Any], max_bytes: int) -> bytes:
    """Shorten the largest strings, and smaller ones only as far as that is not enough."""
    most = max_bytes // 2
    while most >= MIN_CLIP_CHARS:
        encoded = _dump({**head, **_shorten(rest, most), "clipped": True})
        if len(encoded) <= max_bytes:
            return encoded
        most //= 2
    small = {key: one for key, one in rest.items() if not isinstance(one, dict | list)}
    some = dict(list(_shorten(small, MIN_CLIP_CHARS).items())[:MIN_CLIP_CHARS])
    encoded = _dump({**head, **some, "clipped": True})
    return encoded if len(encoded) <= max_bytes else _dump({**head, "clipped": True})


def _shorten(value: Any, most: int) -> Any:
    if isinstance(value, str) and len(value) > most:
        return value[:most] + _left_out(_count_chars(value) - most)
    if isinstance(value, list):
        return [_shorten(one, most) for one in value]
    if isinstance(value, dict):
        return {_shorten(key, most): _shorten(one, most) for key, one in value.items()}
    return value
