"""Payloads as they may be kept: every text in them masked, and all of it bounded.

A text is masked before it is cut, and where it is too long even for that, what stands next to the cut is
thrown away: half a secret would not be known as one.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from policies.secrets.text import MASK

Mask = Callable[[str], str]
"""Masks the secrets in a text. The same text, the same result; masking twice changes nothing."""

MAX_TEXT_CHARS: Final = 4_000
"""Of one text in a payload; of a longer one the head and the tail stay."""
MAX_PAYLOAD_CHARS: Final = 16_000
"""Of all texts and names in a payload together."""
_MAX_ENTRIES: Final = 40
_MAX_DEPTH: Final = 5
_MAX_NAME_CHARS: Final = 80
_SPARE_CHARS: Final = 200
"""For the name that is just too much, and for what says that something is left out."""
_MAX_INT_BITS: Final = 64

_READ_CHARS: Final = 7_000
"""So much of a long text's head, and of its tail, is masked at all: masking takes time."""
_LONGEST_SECRET_CHARS: Final = 4_096
"""A key block is about that long: so much on either side of a cut may be the rest of one."""

_LEFT_OUT: Final = "…"
_PROBES: Final = ("correct horse battery", "Zq8vK2pL9xR4")
"""Secret only by the name that they stand under."""


def masked_payload(payload: Mapping[str, Any], mask: Mask) -> dict[str, Any]:
    """Give a payload as JSON has it, masked and bounded; its shape and its fields' names stay.

    Under a name that tells (`password`) every value is masked, whatever it looks like; so is what
    follows a telling option in a list of arguments.
    """
    masked: dict[str, Any] = _Masking(mask).mapping(payload, _MAX_DEPTH, telling=False)
    return masked


def masked_text(text: str, mask: Mask, most: int = MAX_TEXT_CHARS) -> str:
    """Mask a text and give its head and tail, at most `most` characters in all.

    What no database and no prompt can carry (NUL, half characters) is replaced.
    """
    if len(text) <= 2 * _READ_CHARS:
        return clipped(mask(_carried(text)), most)
    head = mask(_carried(text[:_READ_CHARS]))[:-_LONGEST_SECRET_CHARS]
    tail = mask(_carried(text[-_READ_CHARS:]))[_LONGEST_SECRET_CHARS:]
    return _joined(head, tail, len(text), most)


def clipped(text: str, most: int) -> str:
    """Give a text's head and tail where it is too long, at most `most` characters in all."""
    return text if len(text) <= most else _joined(text, text, len(text), most)


def _joined(head: str, tail: str, chars: int, most: int) -> str:
    """Put a head and a tail of `chars` characters together, and say what is left out between."""
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
    """Mask and bound the name of a field: the same ones come again and again."""
    if len(name) > _MAX_NAME_CHARS:
        return masked_text(name, mask, _MAX_NAME_CHARS)
    return _masked_name(name, mask)


@lru_cache(maxsize=4096)
def _masked_name(name: str, mask: Mask) -> str:
    return masked_text(name, mask, _MAX_NAME_CHARS)


@lru_cache(maxsize=4096)
def _is_telling(name: str, mask: Mask) -> bool:
    """Whether what stands under a name is a secret because of the name."""
    lines = [f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(one)}" for one in _PROBES]
    return any(mask(f"{{{line}}}") != f"{{{line}}}" for line in lines) or any(
        mask(f"{name}={one}") != f"{name}={one}" for one in _PROBES[1:]
    )


@dataclass(slots=True)
class _Masking:
    """One payload on its way: how much of it may still be kept."""

    mask: Mask
    room: int = MAX_PAYLOAD_CHARS - _SPARE_CHARS

    def mapping(self, value: Mapping[Any, Any], depth: int, *, telling: bool) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, one in list(value.items())[:_MAX_ENTRIES]:
            if self.room <= 0:
                kept[_LEFT_OUT] = _LEFT_OUT
                break
            name = masked_name(str(key), self.mask)
            self.room -= len(name)
            kept[name] = self.value(one, depth - 1, telling=telling or _is_telling(name, self.mask))
        return kept

    def sequence(self, value: Sequence[Any], depth: int, *, telling: bool) -> list[Any]:
        kept: list[Any] = []
        before: Any = None
        for one in value[:_MAX_ENTRIES]:
            if self.room <= 0:
                kept.append(_LEFT_OUT)
                break
            follows = telling or self._follows_option(before, one)
            kept.append(self.value(one, depth - 1, telling=follows))
            before = one
        return kept

    def value(self, value: Any, depth: int, *, telling: bool) -> Any:
        """Give one value; what there is no room for is left out."""
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
        if telling and value != "":
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

    def _follows_option(self, before: Any, value: Any) -> bool:
        """Whether an argument is a secret because of the option before it."""
        if not (isinstance(before, str) and isinstance(value, str) and before.startswith("-")):
            return False
        if len(before) > _MAX_NAME_CHARS:
            return False
        line = f"run {_carried(before)} {_PROBES[-1]}"
        return self.mask(line) != line


def _text_of(value: Any) -> str:
    match value:
        case str():
            return value
        case int():
            return hex(value)
        case float():
            return str(value)
        case _:
            return f"[{type(value).__name__}]"
