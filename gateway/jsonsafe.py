"""JSON out of anything: total and always valid.

Whatever an SDK object, an exception or a model put into a value, a line of JSON comes out: cycles,
NaN, bytes, lone surrogates, and objects that raise when they are looked at included. What is no
plain JSON by itself is bounded in depth and in items on the way.
"""

import dataclasses
import json
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import date
from enum import Enum
from pathlib import PurePath
from typing import Any

MAX_DEPTH = 40
MAX_ITEMS = 20_000
"""Items of one container that are written; the rest is counted."""
MAX_INT_BITS = 8192
"""Larger integers are written in hexadecimal, as text: Python refuses to write them in decimals."""


def json_text(value: Any) -> str:
    """Write `value` as one line of JSON. Never raises; never holds a lone surrogate."""
    try:
        text = _dump(value)
        text.encode()
    except Exception:  # noqa: BLE001  a property, an iterator, a `__str__` may raise anything
        return _dump(json_safe(value))
    return text


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def clean_text(text: str) -> str:
    """Replace lone surrogates, which no UTF-8 can carry, by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def json_safe(value: Any) -> Any:
    """Turn `value` into what JSON can carry, by fields where it has some, else by its `str`.

    The result holds nothing but `dict` with `str` keys, `list`, `str`, `int`, finite `float`,
    `bool` and `None`, and shares no container with `value`.
    """
    return _safe(value, frozenset(), 0)


def _safe(value: Any, above: frozenset[int], depth: int) -> Any:
    try:
        return _convert(value, above, depth)
    except Exception:  # noqa: BLE001  whatever one part does when looked at, the rest is written
        return "[unreadable]"


def _convert(value: Any, above: frozenset[int], depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return _safe(value.value, above, depth + 1)
    if isinstance(value, int | float):
        return _number(value)
    text = _text(value)
    if text is not None:
        return text
    if isinstance(value, BaseException):
        return {"type": type(value).__name__, "message": _str(value)}
    if id(value) in above:
        return "[cycle]"
    if depth >= MAX_DEPTH:
        return "[too deep]"
    return _container(value, above | {id(value)}, depth + 1)


def _number(value: float) -> int | float | str:
    if isinstance(value, int):
        whole = int(value)
        return whole if whole.bit_length() <= MAX_INT_BITS else hex(whole)
    return float(value) if math.isfinite(value) else str(float(value))


def _text(value: Any) -> str | None:
    match value:
        case str():
            return clean_text(str.__str__(value))
        case bytes() | bytearray():
            return bytes(value).decode("utf-8", "backslashreplace")
        case date():
            return value.isoformat()
        case PurePath() | type():
            return clean_text(str(value))
        case _:
            return None


def _container(value: Any, above: frozenset[int], depth: int) -> Any:
    if isinstance(value, Mapping):
        return _mapping(value, above, depth)
    if isinstance(value, list | tuple | AbstractSet):
        items = list(value)
        kept = [_safe(one, above, depth) for one in items[:MAX_ITEMS]]
        if len(items) > MAX_ITEMS:
            kept.append(f"[{len(items) - MAX_ITEMS} more]")
        return kept
    if dataclasses.is_dataclass(value):
        return {"type": type(value).__name__, **_fields(value, above, depth)}
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        try:
            dumped = dump()
        except Exception:  # noqa: BLE001  somebody else's method; the text below stands in
            return _str(value)
        return _safe(dumped, above, depth)
    return _str(value)


def _fields(value: Any, above: frozenset[int], depth: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for one in dataclasses.fields(value):
        try:
            out[one.name] = _safe(getattr(value, one.name, None), above, depth)
        except Exception:  # noqa: BLE001  a field that raises must not take the others with it
            out[one.name] = "[unreadable]"
    return out


def _mapping(value: Mapping[Any, Any], above: frozenset[int], depth: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for count, (key, one) in enumerate(value.items()):
        if count >= MAX_ITEMS:
            out["[more]"] = len(value) - MAX_ITEMS
            break
        out[_free_key(_str(key), out)] = _safe(one, above, depth)
    return out


def _free_key(key: str, taken: Mapping[str, Any]) -> str:
    """Tell keys apart that read the same as text, `1` and `"1"` say, so that neither is lost."""
    if key not in taken:
        return key
    return next(name for n in range(2, len(taken) + 3) if (name := f"{key} ({n})") not in taken)


def _str(value: object) -> str:
    try:
        text = str.__str__(value) if isinstance(value, str) else str(value)
        return clean_text(str.__str__(text))
    except Exception:  # noqa: BLE001  a broken __str__ must not break the line
        return f"[{type(value).__name__}]"
