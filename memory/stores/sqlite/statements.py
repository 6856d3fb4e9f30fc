"""Small parts of SQL statements that several stores need."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

_AT_ONCE: Final = 500
"""SQLite bounds the number of parameters of a statement."""


def insert_blocking(
    connection: sqlite3.Connection,
    table: str,
    values: Mapping[str, Any],
    conflict: str = "",
    *,
    verb: str = "INSERT",
) -> sqlite3.Cursor:
    """Insert a row given by column; `conflict` is an `ON CONFLICT` clause."""
    return connection.execute(_insertion(table, tuple(values), conflict, verb), values)


@lru_cache(maxsize=200)
def _insertion(table: str, columns: tuple[str, ...], conflict: str, verb: str) -> str:
    places = ", ".join(f":{name}" for name in columns)
    return f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({places}) {conflict}"


def placeholders(values: Sequence[Any]) -> str:
    """Return a `?` for each value, to stand between parentheses."""
    return ", ".join("?" * len(values))


def id_batches(ids: Iterable[str]) -> Iterator[list[str]]:
    """Yield the ids, each once, in batches that fit into one statement; skip those that cannot exist."""
    wanted = [item_id for item_id in dict.fromkeys(ids) if is_storable(item_id)]
    for start in range(0, len(wanted), _AT_ONCE):
        yield wanted[start : start + _AT_ONCE]


def is_storable(text: str) -> bool:
    """Return whether SQLite can hold a text: one with half a surrogate pair has no encoding."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
