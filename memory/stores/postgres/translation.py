"""What PostgreSQL reads otherwise than SQLite: placeholders, truth values, and a NUL in a text.

Statements are written for SQLite. Functions that SQLite has and PostgreSQL has not are made in
`functions.sql`, by the same names; a table that is read by `rowid` has a column of that name.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from psycopg import Connection, Cursor
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.types.string import StrDumper

_ESCAPE: Final = "\U0010ffff"
"""Begins what stands for a character in a text: a code point that Unicode gives to no character."""
_ESCAPED_NUL: Final = _ESCAPE + "\U0010fffe"
"""PostgreSQL keeps no NUL in a text."""
_ESCAPED_ESCAPE: Final = _ESCAPE + _ESCAPE
_SMALLINT: Final = 21
_PART: Final = re.compile(
    r"'[^']*'"  # a text, in which a name or a `?` is none
    r"|\?|%"
    r"|(?<!:):(?P<name>[A-Za-z_]\w*)"
    r"|(?<=\s)\+(?=[A-Za-z_])"  # keeps SQLite from using an index
    r"|\s(?:NOT\s+INDEXED|INDEXED\s+BY\s+\w+)"  # PostgreSQL chooses its indexes itself
)


@lru_cache(maxsize=1000)
def translated(sql: str) -> str:
    """Return a statement with psycopg's placeholders in the place of `?` or `:name`."""
    return _PART.sub(_translate, sql)


def _translate(found: re.Match[str]) -> str:
    part = found[0]
    if found["name"]:
        return f"%({found['name']})s"
    if part == "?":
        return "%s"
    return part.replace("%", "%%") if part[0] in "'%" else ""


class Row:
    """A row by the names and the places of its columns, as `sqlite3.Row` is."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: dict[str, int], values: Sequence[Any]) -> None:
        self._places = places
        self._values = values

    def __getitem__(self, key: str | int) -> Any:
        return self._values[self._places[key] if isinstance(key, str) else key]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def keys(self) -> list[str]:
        """Return the names of the columns."""
        return list(self._places)


def row_factory(cursor: Cursor[Any]) -> Callable[[Sequence[Any]], Row]:
    """Return what makes a row of the values of a cursor's columns."""
    columns = cursor.description or ()
    places = {column.name: place for place, column in enumerate(columns)}
    return lambda values: Row(places, values)


class _TextDumper(StrDumper):
    def dump(self, obj: str) -> Buffer:
        return _escaped(obj).encode()  # raises for half a surrogate pair, as sqlite3 does


class _TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        text = str(data, "utf-8")
        return _unescaped(text) if _ESCAPE in text else text


class _TruthDumper(Dumper):
    oid = _SMALLINT

    def dump(self, obj: bool) -> Buffer:  # noqa: FBT001  psycopg's interface
        return b"1" if obj else b"0"


def _escaped(text: str) -> str:
    if _ESCAPE in text:
        text = text.replace(_ESCAPE, _ESCAPED_ESCAPE)
    return text.replace("\0", _ESCAPED_NUL) if "\0" in text else text


def _unescaped(text: str) -> str:
    parts = (part.replace(_ESCAPED_NUL, "\0") for part in text.split(_ESCAPED_ESCAPE))
    return _ESCAPE.join(parts)


def adapt(connection: Connection[Any]) -> None:
    """Make a connection take and return values as sqlite3 does."""
    connection.adapters.register_dumper(str, _TextDumper)
    connection.adapters.register_dumper(bool, _TruthDumper)
    connection.adapters.register_loader("text", _TextLoader)
