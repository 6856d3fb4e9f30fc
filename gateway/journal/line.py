"""Render one journal line as JSON: masked and bounded. Runs in the writer's thread."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from gateway.jsonsafe import json_safe, json_text
from gateway.observability.masking import CleanStrings, Mask, mask_leaves, mask_text
from memory.clock import rfc3339

JournalKind = Literal["request", "context", "message", "permission", "tool", "error", "response"]

MAX_LINE_BYTES = 4 * 1024 * 1024
"""A longer line is clipped. Readers rely on no line being longer."""
_MIN_CLIP_CHARS = 64
_LEFT_OUT = re.compile(r"…\[(\d{1,15}) characters left out\]\Z")
_MASKING_MARGIN_CHARS = 16_384
"""Masked beyond the cut of an oversized string and then dropped, so that no cut halves a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line as the turn wrote it."""

    at: datetime
    kind: JournalKind
    fields: Mapping[str, Any]
    masked: AbstractSet[str] = frozenset()
    """Texts in `fields` that were masked before."""
    size: int = 0
    """Estimated characters in `fields`."""
    refused_before: int = 0
    """Lines of the same turn that were refused before this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """How lines become bytes."""

    mask: Mask
    max_bytes: int = MAX_LINE_BYTES
    _clean: CleanStrings = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_clean", CleanStrings(self._mask))

    def encode(self, line: Line, seq: int, envelope: Mapping[str, str]) -> bytes:
        """Return the line as UTF-8 JSON with its newline, at most `max_bytes` long. Never raises.

        The line's own fields (`ts`, `seq`, `kind` and the envelope) come first and win.
        """
        head = {"ts": rfc3339(line.at), "seq": seq, **envelope, "kind": line.kind}
        masked = mask_leaves(json_safe(line.fields), self._mask, line.masked, self._clean)
        fields = {key: value for key, value in masked.items() if key not in head}
        encoded = _dump({**head, **fields})
        return encoded if len(encoded) <= self.max_bytes else self._clip(head, fields)

    def _mask(self, text: str) -> str:
        if len(text) <= self.max_bytes + _MASKING_MARGIN_CHARS:
            return self.mask(text)
        cut = mask_text(text[: self.max_bytes + _MASKING_MARGIN_CHARS], self.mask)
        return cut[:-_MASKING_MARGIN_CHARS] + _left_out(len(text) - self.max_bytes)

    def _clip(self, head: dict[str, Any], fields: dict[str, Any]) -> bytes:
        """Shorten the largest strings, and smaller ones only as far as that is not enough."""
        max_chars = self.max_bytes
        while max_chars >= 2 * _MIN_CLIP_CHARS:
            max_chars //= 2
            encoded = _dump({**head, **_shorten(fields, max_chars), "clipped": True})
            if len(encoded) <= self.max_bytes:
                return encoded
        plain = {key: value for key, value in fields.items() if not isinstance(value, dict | list)}
        encoded = _dump({**head, **_shorten(plain, _MIN_CLIP_CHARS), "clipped": True})
        return encoded if len(encoded) <= self.max_bytes else _dump({**head, "clipped": True})


def _dump(value: Mapping[str, Any]) -> bytes:
    return json_text(value).encode() + b"\n"


def _left_out(chars: int) -> str:
    return f"…[{chars} characters left out]"


def _shorten(value: Any, max_chars: int) -> Any:
    if isinstance(value, str) and len(value) > max_chars:
        cut = _LEFT_OUT.search(value, max(0, len(value) - 60))
        length = len(value) if cut is None else cut.start() + int(cut[1])
        return value[:max_chars] + _left_out(length - max_chars)
    if isinstance(value, list):
        return [_shorten(item, max_chars) for item in value]
    if isinstance(value, dict):
        return {_shorten(key, max_chars): _shorten(item, max_chars) for key, item in value.items()}
    return value
