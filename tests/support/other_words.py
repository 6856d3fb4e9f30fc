"""A database whose statements say something else in one place: a wrong store in one line."""

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from memory.errors import StoreConflict
from memory.stores.sqlite.database import Database
from tests.conformance.suites.opened import run_test

CAUGHT = (AssertionError, ValueError, KeyError, StoreConflict, pytest.fail.Exception)
"""With what a test of a suite fails; a statement that is wrong SQL is told otherwise."""


class OtherWords:
    """A database that puts `new` in the place of `old` in each statement, and knows whether there was one."""

    def __init__(self, database: Database, old: str, new: str) -> None:
        self._database = database
        self._old, self._new = old, new
        self.was_there = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def _said(self, sql: str) -> str:
        self.was_there |= self._old in sql
        return sql.replace(self._old, self._new)

    def _on(self, work: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda connection: work(_Spoken(connection, self._said))

    async def rows(self, sql: str, parameters: Any = ()) -> Any:
        return await self._database.rows(self._said(sql), parameters)

    async def row(self, sql: str, parameters: Any = ()) -> Any:
        return await self._database.row(self._said(sql), parameters)

    async def values(self, make: Any, sql: str, parameters: Any = ()) -> Any:
        return await self._database.values(make, self._said(sql), parameters)

    async def read(self, work: Callable[[Any], Any]) -> Any:
        return await self._database.read(self._on(work))

    async def write(self, work: Callable[[Any], Any], **options: Any) -> Any:
        return await self._database.write(self._on(work), **options)


class _Spoken:
    def __init__(self, connection: sqlite3.Connection, said: Callable[[str], str]) -> None:
        self._connection = connection
        self._said = said

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        return self._connection.execute(self._said(sql), parameters)

    def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
        return self._connection.executemany(self._said(sql), rows)


async def expect_caught(
    test: Callable[..., Awaitable[None]],
    old: str,
    new: str,
    opening: Callable[[Callable[[Database], Database]], Any],
    **case: Any,
) -> None:
    """Run a test of a suite on a store of other words; fail where it passes, or nothing says `old`."""
    spoken: list[OtherWords] = []

    def speaking(database: Database) -> Database:
        spoken.append(OtherWords(database, old, new))
        return cast("Database", spoken[-1])

    with pytest.raises(CAUGHT):
        await run_test(test, opening(speaking), **case)
    assert any(entry.was_there for entry in spoken), "no statement says that"
