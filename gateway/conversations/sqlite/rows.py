"""Rows to values, and back."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from sqlite3 import Row
from typing import Any, TypeVar

from gateway.conversations.model import Conversation, Turn, TurnEvent
from gateway.jsonsafe import json_text
from memory.clock import from_rfc3339, rfc3339
from memory.errors import StoreDamaged
from memory.stores.sqlite.driver_errors import decoding_rows

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


def conversation_of(row: Row) -> Conversation:
    """Return a row of `conversations` as a value."""
    values = _columns(row, Conversation)
    for name in ("memory_enabled", "case_memory", "pinned"):
        values[name] = bool(values[name])
    for name in ("created_at", "last_activity_at"):
        values[name] = from_rfc3339(values[name])
    return Conversation(**values)


def turn_of(row: Row) -> Turn:
    """Return a row of `turns` as a value."""
    values = _columns(row, Turn)
    readers = dict.fromkeys(_MOMENTS, from_rfc3339) | {"result": json.loads}
    read = {
        name: reader(values[name]) for name, reader in readers.items() if values[name] is not None
    }
    return Turn(**values | read)


def row_of_turn(turn: Turn) -> dict[str, Any]:
    """Return the columns of `turns`."""
    values = {field.name: getattr(turn, field.name) for field in fields(Turn)}
    writers = dict.fromkeys(_MOMENTS, rfc3339) | {"result": json_text}
    return {
        name: writers[name](value) if name in writers and value is not None else value
        for name, value in values.items()
    }


def event_of(row: Row) -> TurnEvent:
    """Return a row of `events` as a value."""
    return TurnEvent(**_columns(row, TurnEvent))


def _columns(row: Row, model: type[Conversation | Turn | TurnEvent]) -> dict[str, Any]:
    """Return the columns of a row that are named like the fields of a model."""
    return {field.name: row[field.name] for field in fields(model)}
