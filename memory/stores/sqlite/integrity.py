"""The checks of a whole SQLite file, made once at the start and beside the work on it.

SQLite notices damage only on the pages that it reads. Without this check a server would call itself
ready until somebody asks for the damaged part.
"""

import logging
import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from memory.errors import StoreDamaged, StoreUnavailable
from memory.stores.sqlite.connections import add_functions, connect_blocking
from memory.stores.sqlite.database import Database, refuse_newer_blocking, version_blocking
from memory.stores.sqlite.driver_errors import translating_errors

_log = logging.getLogger(__name__)

_START_S: Final = 1.0
"""A start waits so long for the result; the check of a larger file goes on in the background."""
_STEPS: Final = 10_000
"""SQLite asks after so many steps, a few milliseconds, whether the check is still wanted."""
_SCHEMA: Final = (
    "SELECT type, name, NULL FROM sqlite_master"
    " UNION SELECT 'column', master.name, info.name"
    " FROM sqlite_master AS master, pragma_table_info(master.name) AS info"
)


async def check_integrity(
    database: Database,
    migrations: Sequence[str],
    *,
    start_s: float = _START_S,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Check the file, in a task group, and have the database report damage in `ping`.

    Reports as started when the check is over, or after `start_s` seconds. Stops when cancelled.
    """
    is_over = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_check, database, migrations, is_over)
        with anyio.move_on_after(start_s):
            await is_over.wait()
        task_status.started()


async def _check(database: Database, migrations: Sequence[str], is_over: anyio.Event) -> None:
    given_up = threading.Event()
    try:
        await anyio.to_thread.run_sync(
            check_blocking, database.path, migrations, given_up, abandon_on_cancel=True
        )
    except StoreDamaged as exc:
        database.note_damage(exc)
        _log.exception("database_damaged", extra={"database": database.path.name})
    except StoreUnavailable:
        _log.warning("database_not_checked", exc_info=True)
    finally:
        given_up.set()
        is_over.set()


def check_blocking(
    path: Path, migrations: Sequence[str], given_up: threading.Event | None = None
) -> None:
    """Check a database that was brought up to the last migration.

    Raise `StoreDamaged` if its pages or its schema are not what SQLite and the migrations have
    written; `StoreUnavailable` if it cannot be read, or `given_up` was set.
    """
    with (
        translating_errors("checked"),
        closing(connect_blocking(path, is_reader=True)) as connection,
    ):
        if given_up is not None:
            connection.set_progress_handler(given_up.is_set, _STEPS)
        _check_pages(connection)
        _check_schema(connection, migrations)


def examine_blocking(path: Path, migrations: Sequence[str]) -> None:
    """Make the checks of a start on a file, whether or not a server uses it; change nothing.

    Raise `StoreUnavailable` if it could not be opened, or a newer program has written it;
    `StoreDamaged` also if it could be opened and is damaged elsewhere.
    """
    with translating_errors("opened"):
        os.close(os.open(path, os.O_RDWR))
        connection = look_at_blocking(path)
    with closing(connection):
        connection.row_factory = sqlite3.Row
        add_functions(connection)
        with translating_errors("opened"):
            refuse_newer_blocking(connection, migrations)
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        with translating_errors("checked"):
            _check_pages(connection)
            if version_blocking(connection) == len(migrations):  # else a start changes the tables
                _check_schema(connection, migrations)


def _check_pages(connection: sqlite3.Connection) -> None:
    connection.text_factory = lambda text: text.decode(errors="replace")
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise StoreDamaged("The database is damaged.") from sqlite3.DatabaseError(found)


def _check_schema(connection: sqlite3.Connection, migrations: Sequence[str]) -> None:
    missing = _schema_of(tuple(migrations)) - set(connection.execute(_SCHEMA))
    # without a table, its columns and indexes are missing, too
    named = [row for row in missing if row[0] == "table"] or missing
    if named:
        lacks = sorted(
            f"the {kind} {name}" + (f".{column}" if column else "") for kind, name, column in named
        )
        raise StoreDamaged(f"The database is damaged: it lacks {', '.join(lacks)}.")


@cache
def _schema_of(migrations: tuple[str, ...]) -> frozenset[sqlite3.Row]:
    """Return the tables, indexes, triggers and columns that the migrations make; to run them takes
    20 ms.
    """
    with closing(connect_blocking(":memory:")) as connection:
        for migration in migrations:
            connection.executescript(migration)
        return frozenset(connection.execute(_SCHEMA))


def holds_nothing_blocking(path: Path) -> bool:
    """Return whether the file is missing or a database without tables; False when it cannot be
    read.

    A database in use has its tables from its first start on, so one without them was emptied.
    """
    if not path.exists() or path.stat().st_size == 0:  # SQLite would drop the log beside it
        return True
    try:
        with closing(look_at_blocking(path)) as connection:
            return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None
    except (sqlite3.Error, UnicodeDecodeError):
        return False


def look_at_blocking(path: Path) -> sqlite3.Connection:
    """Open a database that nobody uses, to look at it: neither makes nor removes the
    log beside it.
    """
    return sqlite3.connect(uri_to_look_at_blocking(path), uri=True)


def uri_to_look_at_blocking(path: Path) -> str:
    """Return the address of a file that is only read. One whose transaction was cut off is rolled
    back when it is read.
    """
    if path.with_name(f"{path.name}-journal").exists():
        mode = "rw"
    else:
        mode = "ro" if path.with_name(f"{path.name}-wal").exists() else "ro&immutable=1"
    return f"{path.absolute().as_uri()}?mode={mode}"
