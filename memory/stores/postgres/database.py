"""One PostgreSQL schema: migrations, transactions that are run again, and reads on snapshots.

Transactions are SERIALIZABLE, so that what a function reads before it writes still holds when it is
committed, as with SQLite's one writer. Where two of them contradict each other the server ends one,
and its function is run again.
"""

import logging
import random
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib.resources import files
from typing import Final, TypeVar

import anyio
import anyio.to_thread
import psycopg
from psycopg import sql

from memory.errors import CommitUnknown, StoreUnavailable
from memory.stores.database import Connection, Parameters, SqlDatabase
from memory.stores.postgres.connections import (
    Driver,
    ReaderPool,
    WriterPool,
    connect_blocking,
    pipelined_blocking,
)
from memory.stores.postgres.driver_errors import translating_errors
from memory.stores.postgres.translation import Row
from memory.stores.postgres.use_lock import Use, UseLock, is_unused_blocking

T = TypeVar("T")

OLDEST_SERVER: Final = 160_000
"""PostgreSQL 16: `IS JSON`."""
_BEGIN: Final = "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE"
_CONTRADICTED: Final = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
_MAX_RUNS: Final = 20
_PAUSE_S: Final = 0.001
"""At most, before a function is run again; doubled with each run, up to 64 times as long."""
_MAX_DOUBLINGS: Final = 6
_NOT_ALONE: Final = (
    "The database cannot be written: it was out of reach, or another server has begun to use it."
)
_NO_ANSWER: Final = "The database cannot be written: its answer to the last change was lost."
_CREATED: Final = re.compile(r"^CREATE TABLE (\w+)", re.MULTILINE)
_MAY_WRITE: Final = (
    "SELECT bool_and(has_table_privilege(name::regclass, verb)) FROM unnest(%s::text[]) AS name,"
    " unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) AS verb"
)
"""Fails if a table is missing."""
_MAY_NOT_CREATE: Final = (
    "The database cannot be opened: the user may not do that. It needs the right CREATE on the "
    "database, which the database's owner gives it with GRANT CREATE ON DATABASE … TO …."
)
_NEWER: Final = "The database was written by a newer version of this program."
_EXPAND: Final = "-- expand\n"
"""Begins a migration after which programs that do not know it go on."""
_CONTRACT: Final = "-- contract\n"
"""Begins one that takes away what earlier programs need."""
_OTHERS: Final = (
    "The database must be changed in a way that other servers of an earlier version cannot bear: "
    "stop all of them, then start this one."
)
_log = logging.getLogger(__name__)


class InUse(StoreUnavailable):
    """Another program has the schema open, and would have it alone."""


class PostgresDatabase(SqlDatabase):
    """Open tables of one schema. Made by `open_postgres`; close it."""

    engine = "postgresql"

    def __init__(self, url: str, schema: str, use_lock: UseLock | None = None) -> None:
        self._use_lock = use_lock
        self._writers = WriterPool(url, schema)
        self._readers = ReaderPool(url, schema)

    async def write(self, work: Callable[[Connection], T], *, is_synced: bool = True) -> T:
        """See `SqlDatabase`. Transactions run side by side, with the effect of one after another.

        All are synced: unlike a cut of the power, a crash of PostgreSQL leaves this process alive,
        with numbers and epochs in memory that the database would have lost.

        Raise `CommitUnknown` if the connection is lost before the answer to the commit.
        """
        self._require_open()
        if self._use_lock is not None and not self._use_lock.is_held:
            raise StoreUnavailable(_NOT_ALONE)
        del is_synced
        transaction = partial(self._transact_blocking, work)
        with translating_errors("written"):
            with anyio.CancelScope(shield=True):
                result = await self._writers.run(transaction)
            return result  # noqa: RET504  mypy: the scope might swallow an error

    async def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        self._require_open()
        with translating_errors("read"), suppress(UnicodeEncodeError):
            return await self._readers.rows(sql, parameters)
        return []

    async def read(self, work: Callable[[Connection], T]) -> T:
        self._require_open()
        with translating_errors("read"):
            return await self._readers.run(work)

    async def checkpoint(self) -> bool:
        """Return True: the server's own vacuum removes what was deleted."""
        return True

    async def ping(self) -> str | None:
        """Return None when the database can be read and written, else a sentence.

        Damage that was found once is reported from then on.
        """
        if self._damage is not None:
            return self._damage
        try:
            await self.write(lambda writer: writer.execute("SELECT pg_current_xact_id()"))
            await self.scalar("SELECT 1")
        except StoreUnavailable as exc:
            return str(exc)
        return None

    async def close(self) -> None:
        self._closed = True
        with anyio.CancelScope(shield=True):
            await self._writers.close()
            await anyio.to_thread.run_sync(self._readers.close_blocking)
            if self._use_lock is not None:
                await anyio.to_thread.run_sync(self._use_lock.close_blocking)

    def _transact_blocking(self, work: Callable[[Connection], T]) -> T:
        was_refused = False
        for run in range(_MAX_RUNS):
            if run:
                pause = _PAUSE_S * 2 ** min(run, _MAX_DOUBLINGS)
                time.sleep(random.uniform(0, pause))  # noqa: S311  so that rivals part
            try:
                return self._writers.use_blocking(partial(_commit_blocking, work))
            except _CONTRADICTED:
                if run == _MAX_RUNS - 1:
                    raise
            except psycopg.IntegrityError:
                # a rival that committed meanwhile shows itself so, too
                if was_refused:
                    raise
                was_refused = True
        raise AssertionError("the last run returns or raises")


def _commit_blocking(work: Callable[[Connection], T], connection: Driver) -> T:
    """Run a transaction. Raise `CommitUnknown` if it may have been committed or not."""
    is_committing = False
    try:
        with pipelined_blocking(connection) as statements:
            begun = connection.execute(_BEGIN, prepare=False)
            result = work(statements)
            if begun.pgresult is None:  # no answer yet: the connection may have been lost
                statements.wait_blocking()
            is_committing = True
            connection.execute("COMMIT")
    except psycopg.Error as exc:
        if is_committing and connection.closed:
            raise CommitUnknown(_NO_ANSWER) from exc
        raise
    return result


def is_made_blocking(url: str, schema: str) -> bool:
    """Return whether the schema has the tables of a program. Raise `StoreUnavailable` if it cannot
    be reached.
    """
    with translating_errors("opened"), connect_blocking(url, schema, is_reader=True) as connection:
        row = connection.execute("SELECT to_regclass('schema_version')").fetchone()
        return row is not None and row[0] is not None


async def open_postgres(
    url: str, migrations: Sequence[str], *, schema: str, use: Use | None = None
) -> PostgresDatabase:
    """Open a schema of a database, created if missing, and bring it up to the last migration.

    Several programs may do so at the same time. Of those that say how they `use` it, one has it
    alone, or several have it with others: `InUse` is raised for who would contradict that. One that
    the server was out of reach for writes again when that still holds. Raise `StoreUnavailable` if
    it cannot be opened, is older than PostgreSQL 16, is not in UTF-8, or a newer program has
    written it.
    """
    with translating_errors("opened"):
        await anyio.to_thread.run_sync(_prepare_blocking, url, migrations, schema)
        if use is None:
            return PostgresDatabase(url, schema)
        use_lock = UseLock(url, schema, use)
        if not await anyio.to_thread.run_sync(use_lock.take_blocking):
            raise InUse("The database is used by another program.")
    return PostgresDatabase(url, schema, use_lock)


def try_postgres_blocking(url: str, migrations: Sequence[str], schema: str) -> None:
    """Do what `open_postgres` does in a transaction that is rolled back.

    Raise `StoreUnavailable` as it does, or if a table is missing or may not be written.
    """
    with translating_errors("opened"), connect_blocking(url, schema) as connection:
        require_supported(connection)
        with connection.transaction(force_rollback=True):
            migrate_blocking(connection, migrations, schema, waits=False)
            with translating_errors("written"):
                tables = _CREATED.findall("\n".join(migrations))
                row = connection.execute(_MAY_WRITE, (tables,)).fetchone()
                if not (row and row[0]):
                    raise psycopg.errors.InsufficientPrivilege


def _prepare_blocking(url: str, migrations: Sequence[str], schema: str) -> None:
    with connect_blocking(url, schema) as connection:
        require_supported(connection)
        with connection.transaction():
            migrate_blocking(connection, migrations, schema)


def require_supported(connection: Driver) -> None:
    """Raise `StoreUnavailable` if the server is older than PostgreSQL 16, or the database is not in
    UTF-8.
    """
    if connection.info.server_version < OLDEST_SERVER:
        raise StoreUnavailable("The database cannot be opened: it is older than PostgreSQL 16.")
    if connection.info.parameter_status("server_encoding") != "UTF8":
        raise StoreUnavailable("The database cannot be opened: its encoding is not UTF8.")


def migrate_blocking(
    connection: Driver, migrations: Sequence[str], schema: str, *, waits: bool = True
) -> None:
    """Apply the missing migrations in the transaction that is open; another program that does so is
    waited for, unless `waits` is False: then for 5 seconds. The search path leads to the schema.

    Raise `StoreUnavailable` if a newer program has applied others, unless each of them begins with
    the line `-- expand`, or if one begins with `-- contract` and another program uses the schema.
    """
    if waits:
        connection.execute("SET LOCAL lock_timeout TO 0")
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (schema,))
    create = sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema))
    try:
        connection.execute(create)
    except psycopg.errors.InsufficientPrivilege as exc:
        raise StoreUnavailable(_MAY_NOT_CREATE) from exc
    steps = {0: files(__package__).joinpath("functions.sql").read_text(encoding="utf-8")}
    steps |= dict(enumerate(migrations, start=1))
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY,"
        " applied_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())"
    )
    applied = {row[0] for row in connection.execute("SELECT version FROM schema_version")}
    newer = [number for number in applied if number > len(migrations)]
    if not applied.issuperset(-number for number in newer):
        raise StoreUnavailable(_NEWER)
    if newer:
        _log.warning("database_is_newer", extra={"schema": schema, "version": max(newer)})
    for number, step in steps.items():
        if number > max(applied, default=-1):
            if step.startswith(_CONTRACT) and not is_unused_blocking(connection, schema):
                raise StoreUnavailable(_OTHERS)
            connection.execute(step, prepare=False)
            # of one that only adds, the number below 0 stands beside it
            for row in (number, -number) if step.startswith(_EXPAND) else (number,):
                connection.execute("INSERT INTO schema_version VALUES (%s)", (row,))
