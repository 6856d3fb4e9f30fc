"""Rows to values, and back."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from sqlite3 import Row
from typing import Any, TypeVar

from gateway.conversations.model import Turn
from gateway.jsonsafe import json_text
from memory.clock import rfc3339
from memory.errors import StoreDamaged
from memory.stores.sqlite.driver_errors import decoding_rows
from memory.stores.sqlite.row_values import read_value

_log = logging.getLogger(__name__)

T = TypeVar("T")

_MOMENTS = ("created_at", "started_at", "finished_at")


def readable(rows: Iterable[Row], decode: Callable[[Row], T], what: str) -> Iterator[T]:
    """Yield the rows that can be read; a damaged one is logged and must not hide the others."""
    for row in rows:
        try:
            with decoding_rows():
                value = decode(row)
        except StoreDamaged:
            _log.exception("%s_damaged", what, extra={f"{what}_id": row["id"]})
        else:
            yield value


def turn_of(row: Row) -> Turn:
    """Return a row of `turns` as a value."""
    result = None if row["result"] is None else json.loads(row["result"])
    return read_value(Turn, row, result=result)


def row_of_turn(turn: Turn) -> dict[str, Any]:
    """Return the columns of `turns`."""
    values = {field.name: getattr(turn, field.name) for field in fields(Turn)}
    writers = dict.fromkeys(_MOMENTS, rfc3339) | {"result": json_text}
    return {
        name: writers[name](value) if name in writers and value is not None else value
        for name, value in values.items()
    }
