"""Which fields payloads really have: names and types, never values."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from memory.intents.masking import Mask, masked_name

_MAX_FIELDS: Final = 100
_MAX_DEPTH: Final = 2


def observe_intent_payload(payload: Mapping[str, Any], mask: Mask = str) -> list[tuple[str, str]]:
    """List the payload's fields with their types, those of its objects as `args.path`.

    Sorted, at most 100, names masked and of at most 80 characters: a model may have made them up.
    """
    return sorted(set(_fields(payload, "", _MAX_DEPTH, mask)))[:_MAX_FIELDS]


def _fields(
    value: Mapping[str, Any], before: str, depth: int, mask: Mask
) -> Iterator[tuple[str, str]]:
    for name, one in list(value.items())[:_MAX_FIELDS]:
        path = f"{before}{masked_name(str(name), mask)}"
        yield path, _type(one)
        if isinstance(one, Mapping) and depth > 1:
            yield from _fields(one, f"{path}.", depth - 1, mask)


def _type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "flag"
        case int() | float():
            return "number"
        case str():
            return "text"
        case Mapping():
            return "object"
        case list() | tuple():
            return "list"
        case _:
            return "other"
