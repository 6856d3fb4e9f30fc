"""Dataclasses from rows and from objects in JSON, and back, by the names and types
of their fields.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from memory.clock import from_rfc3339, rfc3339
from memory.stores import database
from memory.stores.database import decoding_rows

T = TypeVar("T")
Row = Mapping[str, Any] | database.Row
_Readers = Mapping[str, Callable[[Any], Any] | None]
_READ_AS: Final[Mapping[type, Callable[[Any], Any]]] = {
    datetime: from_rfc3339,
    bool: bool,
    tuple: tuple,
}
"""How columns are read for fields of these types; all others are taken as they are."""


@decoding_rows()
def read_value(model: type[T], row: Row, **known: Any) -> T:
    """Return a dataclass made of the columns that are named like its fields, and of `known` fields.

    A field without a column has its default. Raise `StoreDamaged` if a column cannot be read.
    """
    columns = row.keys()
    for name, read in _readers(model).items():
        if name in columns and name not in known:
            value = row[name]
            known[name] = value if read is None or value is None else read(value)
    return model(**known)


def columns_of(value: object, **changed: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as columns, moments as text, with `changed` ones in their
    place.
    """
    values = {name: getattr(value, name) for name in _readers(type(value)) if name not in changed}
    return changed | {
        name: rfc3339(column) if isinstance(column, datetime) else column
        for name, column in values.items()
    }


def _read_hints(model: Any) -> _Readers:
    readers = {}
    for name, hint in get_type_hints(model).items():
        hints = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        kinds = [get_origin(kind) or kind for kind in hints]
        readers[name] = next((_READ_AS[kind] for kind in kinds if kind in _READ_AS), None)
    return readers


_readers: Final[Callable[[Any], _Readers]] = cache(_read_hints)
