"""Observes which fields payloads really have: names and types, never values."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from memory.intents.chronicle import SqlChronicle

_MAX_FIELDS: Final = 100
_MAX_DEPTH: Final = 2
_MAX_RECORDS: Final = 500
_TYPES: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (type(None), "null"),
    (bool, "flag"),
    ((int, float), "number"),
    (str, "text"),
    (Mapping, "object"),
    ((list, tuple), "list"),
    (object, "other"),
)
"""The first that fits counts: a bool is an int, too."""


def observe_intent_payload(payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the payload's fields with their types, those of its objects as `args.path`.

    Sorted, at most 100. The names of a stored payload are masked and short, see `masked_payload`.
    """
    return sorted(set(_fields(payload, "", _MAX_DEPTH)))[:_MAX_FIELDS]


async def observed_fields(
    chronicle: SqlChronicle, owner_id: str, key: str
) -> list[tuple[str, str, int]]:
    """Return name, type and number of the fields of an owner's newest payloads of a key, sorted."""
    page = await chronicle.page(owner_id, key=key, limit=_MAX_RECORDS)
    seen = Counter(
        field for record in page.records for field in observe_intent_payload(record.payload)
    )
    return [(*field, seen[field]) for field in sorted(seen)]


def _fields(value: Mapping[str, Any], before: str, depth: int) -> Iterator[tuple[str, str]]:
    for name, entry in list(value.items())[:_MAX_FIELDS]:
        path = f"{before}{name}"
        yield path, next(word for kind, word in _TYPES if isinstance(entry, kind))
        if isinstance(entry, Mapping) and depth > 1:
            yield from _fields(entry, f"{path}.", depth - 1)
