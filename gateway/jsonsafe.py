"""Write any value as valid JSON.

SDK objects, exceptions, cycles, NaN, bytes, lone surrogates, and objects that raise when they are
read all become JSON. Values that are not plain JSON already are bounded in depth and in items.
"""

import dataclasses
import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from enum import Enum
from itertools import islice
from pathlib import PurePath
from typing import Any, Final

from policies.secrets import field_name

MAX_DEPTH = 40
MAX_ITEMS = 20_000
"""Items of one container that are written; the rest is counted."""
MAX_INT_BITS = 8192
"""Larger integers are written in hexadecimal, as text: Python refuses to write them in decimals."""
_ITEM_CHARS = 32
_ESTIMATED_ITEMS = 4000


def json_text(value: Any) -> str:
    """Return `value` as one line of JSON, without lone surrogates. Never raises."""
    try:
        text = _dump(value)
        text.encode()
    except Exception:  # noqa: BLE001  a foreign object's code may raise anything
        return _dump(json_safe(value))
    return text


def pretty_json(value: Any) -> str:
    """Return a value made by `json_safe` as JSON for people."""
    return json.dumps(value, ensure_ascii=False, indent=2)


_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def clean_text(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot carry, by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def estimate_chars(value: Any) -> int:
    """Estimate the text in a value: the lengths of its strings, and 32 for each item.

    Reads at most 4,000 items, so its time is bounded.
    """
    total, waiting = 0, deque([value])
    for _ in range(_ESTIMATED_ITEMS):
        if not waiting:
            break
        item = waiting.popleft()
        if isinstance(item, _TEXT):
            total += len(item)
        else:
            total += _ITEM_CHARS
            waiting.extend(islice(_items(item), _ESTIMATED_ITEMS))
    return total + len(waiting) * _ITEM_CHARS


_TEXT: Final = (str, bytes)


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return (part for item in value.items() for part in item)
    if isinstance(value, list | tuple):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return (getattr(value, field.name, None) for field in dataclasses.fields(value))
    return ()


def json_safe(value: Any) -> Any:
    """Convert `value` to plain JSON: by its fields if it has some, else by its `str`.

    The result consists of `dict` with `str` keys, `list`, `str`, `int`, finite `float`, `bool` and
    `None`, and shares no container with `value`.
    """
    return _safe(value, frozenset(), 0)


def _safe(value: Any, above: frozenset[int], depth: int) -> Any:
    try:
        return _convert(value, above, depth)
    except Exception:  # noqa: BLE001  a foreign object's code may raise anything; the rest is written
        return "[unreadable]"


_SCALARS: Final[Sequence[tuple[tuple[type, ...], Callable[[Any], Any]]]] = (
    ((type(None), bool), lambda value: value),
    ((Enum,), lambda value: _safe(value.value, frozenset(), 0)),
    ((int,), lambda value: int(value) if value.bit_length() <= MAX_INT_BITS else hex(value)),
    ((float,), lambda value: float(value) if math.isfinite(value) else str(float(value))),
    ((str,), lambda value: clean_text(str.__str__(value))),
    ((bytes, bytearray), lambda value: bytes(value).decode("utf-8", "backslashreplace")),
    ((date,), lambda value: value.isoformat()),
    ((PurePath, type), lambda value: clean_text(str(value))),
    (
        (BaseException,),
        lambda value: {"type": type(value).__name__, "message": clean_text(str(value))},
    ),
)


def _convert(value: Any, above: frozenset[int], depth: int) -> Any:
    for types, convert in _SCALARS:
        if isinstance(value, types):
            return convert(value)
    if id(value) in above:
        return "[cycle]"
    if depth >= MAX_DEPTH:
        return "[too deep]"
    return _container(value, above | {id(value)}, depth + 1)


def _container(value: Any, above: frozenset[int], depth: int) -> Any:
    if isinstance(value, Mapping):
        return _mapping(value, above, depth)
    if isinstance(value, list | tuple | AbstractSet):
        kept = [_safe(item, above, depth) for item in islice(value, MAX_ITEMS)]
        return kept if len(value) <= MAX_ITEMS else [*kept, f"[{len(value) - MAX_ITEMS} more]"]
    if dataclasses.is_dataclass(value):
        fields = {
            field.name: _safe(getattr(value, field.name, None), above, depth)
            for field in dataclasses.fields(value)
        }
        return {"type": type(value).__name__, **fields}
    return clean_text(str(value))


def _mapping(value: Mapping[Any, Any], above: frozenset[int], depth: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, item in islice(value.items(), MAX_ITEMS):
        text = clean_text(field_name(key))
        name, n = text, 2
        while name in out:  # `1` and `"1"` read the same as text; neither is lost
            name, n = f"{text} ({n})", n + 1
        out[name] = _safe(item, above, depth)
    if len(value) > MAX_ITEMS:
        out["[more]"] = len(value) - MAX_ITEMS
    return out
