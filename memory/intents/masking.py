"""Masks the secrets in payloads and bounds their size.

A text is masked before it is shortened. If it is too long to be masked whole, what stands next to
the cut is dropped, since half a secret would not be recognised.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from policies.secrets import MASK, field_name, is_secret_field, is_secret_item, tells_nothing

Mask = Callable[[str], str]
"""Masks the secrets in a text; deterministic and idempotent."""

MAX_TEXT_CHARS: Final = 4_000
"""Of one text; a longer one keeps its head and its tail."""
MAX_PAYLOAD_CHARS: Final = 16_000
"""Of all texts and names in a payload together."""
_MAX_ENTRIES: Final = 40
_MAX_DEPTH: Final = 5
_MAX_NAME_CHARS: Final = 80
_SPARE_CHARS: Final = 200
"""For a name that exceeds the bound, and for the marks of what is left out."""
_MAX_INT_BITS: Final = 64

_READ_CHARS: Final = 7_000
"""How much of a long text's head and tail is masked; masking takes time."""
_LONGEST_SECRET_CHARS: Final = 4_096
"""About the length of a key block: so much on either side of a cut may be part of a secret."""

_LEFT_OUT: Final = "…"


def masked_payload(payload: Mapping[str, Any], mask: Mask) -> dict[str, Any]:
    """Return a payload as JSON values, masked and bounded; its shape and the names of its fields
    stay.

    Every value under a telling name (`password`) is masked, and so is what follows a telling option
    in a list of arguments.
    """
    masked: dict[str, Any] = _Masking(mask).mapping(payload, _MAX_DEPTH, telling=False)
    return masked


def masked_text(text: str, mask: Mask, most: int = MAX_TEXT_CHARS) -> str:
    """Mask a text and shorten it to `most` characters; replace NUL and half surrogate pairs."""
    if len(text) <= 2 * _READ_CHARS:
        return clipped(mask(_carried(text)), most)
    head = mask(_carried(text[:_READ_CHARS]))[:-_LONGEST_SECRET_CHARS]
    tail = mask(_carried(text[-_READ_CHARS:]))[_LONGEST_SECRET_CHARS:]
    return _joined(head, tail, len(text), most)


def clipped(text: str, most: int) -> str:
    """Shorten a text to `most` characters of its head and tail."""
    return text if len(text) <= most else _joined(text, text, len(text), most)


def _joined(head: str, tail: str, chars: int, most: int) -> str:
    """Join the head and tail of a text of `chars` characters, with the number of those left out."""
    gap = f" … {max(0, chars - most)} more characters … "
    room = max(0, most - len(gap))
    end = min(len(tail), room // 3)
    return f"{head[: room - room // 3]}{gap}{tail[len(tail) - end :]}"[:most]


def _carried(text: str) -> str:
    text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def masked_name(name: str, mask: Mask) -> str:
    """Mask and shorten the name of a field; results are cached."""
    if len(name) > _MAX_NAME_CHARS:
        return masked_text(name, mask, _MAX_NAME_CHARS)
    return _masked_name(name, mask)


@lru_cache(maxsize=4096)
def _masked_name(name: str, mask: Mask) -> str:
    return masked_text(name, mask, _MAX_NAME_CHARS)


@dataclass(slots=True)
class _Masking:
    """The masking of one payload, with the room that is left."""

    mask: Mask
    room: int = MAX_PAYLOAD_CHARS - _SPARE_CHARS

    def mapping(self, value: Mapping[Any, Any], depth: int, *, telling: bool) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, entry in list(value.items())[:_MAX_ENTRIES]:
            if self.room <= 0:
                kept[_LEFT_OUT] = _LEFT_OUT
                break
            name = masked_name(field_name(key), self.mask)
            self.room -= len(name)
            is_secret = is_secret_field(key, within=telling)
            kept[name] = self.value(entry, depth - 1, telling=is_secret)
        return kept

    def sequence(self, value: Sequence[Any], depth: int, *, telling: bool) -> list[Any]:
        kept: list[Any] = []
        before: Any = None
        for entry in value[:_MAX_ENTRIES]:
            if self.room <= 0:
                kept.append(_LEFT_OUT)
                break
            is_secret = is_secret_item(before, within=telling)
            kept.append(self.value(entry, depth - 1, telling=is_secret))
            before = entry
        return kept

    def value(self, value: Any, depth: int, *, telling: bool) -> Any:
        """Return one value masked, or a mark if there is no room for it."""
        self.room -= 1
        if value is None or isinstance(value, bool):
            return value
        if self.room <= 0:
            return _LEFT_OUT
        if isinstance(value, Mapping | list | tuple):
            if depth <= 0:
                return _LEFT_OUT
            if isinstance(value, Mapping):
                return self.mapping(value, depth, telling=telling)
            return self.sequence(value, depth, telling=telling)
        if telling and not tells_nothing(value):
            return MASK
        return self._leaf(value)

    def _leaf(self, value: Any) -> Any:
        if isinstance(value, int) and value.bit_length() <= _MAX_INT_BITS:
            return value
        if isinstance(value, float) and math.isfinite(value):
            return value
        text = masked_text(_text_of(value), self.mask, min(MAX_TEXT_CHARS, self.room))
        self.room -= len(text)
        return text


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return str(value)
    return hex(value) if isinstance(value, int) else f"[{type(value).__name__}]"
