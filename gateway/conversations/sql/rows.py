"""Rows to values, and back."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from gateway.conversations.model import Turn
from gateway.conversations.schedules import ScheduledRun
from gateway.jsonsafe import json_text
from memory.errors import StoreDamaged
from memory.stores.database import Row, decoding_rows
from memory.stores.sqlite.row_values import columns_of, read_value

_log = logging.getLogger(__name__)

T = TypeVar("T")


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


def turn_of(row: Row | Mapping[str, Any]) -> Turn:
    """Return a row of `turns` as a value. Raise `ValueError`, `TypeError` or `StoreDamaged` if it
    is damaged.
    """
    result = None if row["result"] is None else json.loads(row["result"])
    if not isinstance(result, dict | None):
        raise TypeError("a turn result is an object")
    if result is not None and row["copy_of"] is not None:  # it is kept as that of the first one
        result |= {"turn_id": row["id"], "conversation_id": row["conversation_id"]}
    schedule = row["schedule"] and read_value(ScheduledRun, json.loads(row["schedule"]))
    return read_value(Turn, row, result=result, schedule=schedule)


def row_of_turn(turn: Turn) -> dict[str, Any]:
    """Return the columns of `turns`."""
    return columns_of(
        turn,
        result=None if turn.result is None else json_text(turn.result),
        schedule=turn.schedule and json_text(columns_of(turn.schedule)),
    )
