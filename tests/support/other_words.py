"""A database whose statements say something else in one place: a wrong store in one line."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from gateway.conversations.store import QuotaReached
from memory.errors import StoreConflict
from memory.stores.sqlite.database import Database
from tests.conformance.suites.opened import named, run_test
from tests.support.tables import read_rows

CAUGHT = (
    *(AssertionError, ValueError, KeyError, StoreConflict, QuotaReached),
    pytest.fail.Exception,
)
"""With what a test of a suite fails; a statement that is wrong SQL is told otherwise."""


class OtherWords:
    """A database that puts `new` in the place of `old` in each statement, and knows whether there was one."""

    row: Any = Database.row
    scalar: Any = Database.scalar
    value: Any = Database.value
    execute: Any = Database.execute
    execute_many: Any = Database.execute_many
    """These come to `rows`, `values` and `write`."""

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


async def expect_parts_caught(
    directory: Path,
    opening: Callable[[Path], Any],
    suite: object,
    parts: Sequence[tuple[Any, str, Any, str, dict[str, Any]]],
) -> None:
    """Try wrong parts of a store, each a module, a name, what stands for it, a test and its arguments."""
    missed = []
    for number, (module, name, wrong, part, case) in enumerate(parts):
        (directory / str(number)).mkdir()
        with pytest.MonkeyPatch.context() as patched, anyio.fail_after(30), suppress(*CAUGHT):
            patched.setattr(module, name, wrong)
            await run_test(named(part, suite), opening(directory / str(number)), **case)
            missed.append(f"{part} passes with another {name}")
    assert not missed, "\n".join(missed)


Speak = Callable[[Database], Database]


async def expect_all_caught(
    store: str,
    directory: Path,
    opening: Callable[[Path, Speak], Any],
    *suites: object,
    cases: Mapping[str, dict[str, Any]] = {},
) -> None:
    """Try each of a store's wrong statements; fail with those that the suites let pass or that no store has.

    `cases` are the arguments of a suite's parametrised tests.
    """
    missed = []
    for number, (name, old, new, part) in enumerate(read_rows("wrong-statements")):
        if name == store:
            (directory / str(number)).mkdir()
            spoken: list[OtherWords] = []

            def speak(database: Database, said: Any = (old, new, spoken)) -> Database:
                said[2].append(OtherWords(database, *said[:2]))
                return cast("Database", said[2][-1])

            with anyio.fail_after(30), suppress(*CAUGHT):
                test = named(part, *suites)
                await run_test(test, opening(directory / str(number), speak), **cases.get(part, {}))
                missed.append(f"{part} passes with {new!r} for {old!r}")
            if not any(entry.was_there for entry in spoken):
                missed.append(f"no statement has {old!r}")
    assert not missed, "\n".join(missed)
