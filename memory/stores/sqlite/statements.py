"""Small parts of SQL statements that several stores need."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from memory.clock import rfc3339
from memory.items.timespan import TimeSpan
from memory.stores.database import Connection, Row

IN_IDS: Final = "(SELECT value FROM json_each(:ids))"
"""Follows `IN`; `:ids` is an `id_list`, because SQLite bounds the number of parameters of a
statement."""


def insert_blocking(
    connection: Connection,
    table: str,
    values: Mapping[str, Any],
    conflict: str = "",
) -> Any:
    """Insert a row given by column; `conflict` is an `ON CONFLICT` clause. Return the cursor."""
    return connection.execute(_insertion(table, tuple(values), conflict), values)


def upsert_blocking(
    connection: Connection, table: str, values: Mapping[str, Any], key: str
) -> None:
    """Insert a row given by column, or set these columns of the one that has its `key`."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in values)
    insert_blocking(connection, table, values, f"ON CONFLICT ({key}) DO UPDATE SET {changed}")


def first_row(
    connection: Connection, sql: str, values: Sequence[Any] | Mapping[str, Any]
) -> Row | None:
    """Return the first row of a statement; None if it has none."""
    row: Row | None = connection.execute(sql, values).fetchone()
    return row


@lru_cache(maxsize=200)
def _insertion(table: str, columns: tuple[str, ...], conflict: str) -> str:
    places = ", ".join(f":{name}" for name in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places}) {conflict}"  # noqa: S608  names of our own


def placeholders(values: Sequence[Any]) -> str:
    """Return a `?` for each value, to stand between parentheses; without any, what is in no row."""
    return ", ".join("?" * len(values)) or "NULL"


def span_condition(span: TimeSpan) -> tuple[str, list[str]]:
    """Return what limits `occurred_at` to a span, as a continued condition, and its values."""
    bounds = [("occurred_at >= ?", span.since), ("occurred_at < ?", span.until)]
    given = [(sql, rfc3339(moment)) for sql, moment in bounds if moment is not None]
    return "".join(f" AND {sql}" for sql, _ in given), [text for _, text in given]


def id_list(ids: Iterable[str]) -> str:
    """Return ids as the value of `:ids`, without those that no row can have."""
    return json.dumps([given for given in ids if is_storable(given)])


def is_storable(text: str) -> bool:
    """Return whether a database can hold a text: one with half a surrogate pair has no encoding."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
