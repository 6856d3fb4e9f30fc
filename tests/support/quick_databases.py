"""Databases in the test process: opened without taking each migration anew, written without waiting for the disk.

No test cuts the power, and most open a new database or several: the migrations alone take 25 ms, a
copy of what they made takes 2. The programs that tests start and kill do as the program does.
"""

import sqlite3
import threading
from collections.abc import Sequence

import pytest

from memory.stores.sqlite import database

_SYNCHRONOUS = database.SYNCHRONOUS
_MIGRATE = database._migrate_blocking  # noqa: SLF001  there is no other place between a file and its tables
_migrated: dict[tuple[str, ...], sqlite3.Connection] = {}
_lock = threading.Lock()


def be_quick() -> None:
    """Open all databases of this process so from now on."""
    database.SYNCHRONOUS = "OFF"  # type: ignore[misc]
    database._migrate_blocking = _migrate_blocking  # noqa: SLF001


def be_as_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open them as the program does, during one test."""
    monkeypatch.setattr(database, "SYNCHRONOUS", _SYNCHRONOUS)
    monkeypatch.setattr(database, "_migrate_blocking", _MIGRATE)


async def levels_of_writes(opened: database.Database) -> list[str]:
    """Return a list that gets how synchronous each further transaction is."""
    levels: list[str] = []

    def note(statement: str) -> None:
        name, _, level = statement.partition("=")
        if name == "PRAGMA synchronous":
            levels.append(level)

    await opened.write(lambda writer: writer.set_trace_callback(note))
    return levels


def _migrate_blocking(writer: sqlite3.Connection, migrations: Sequence[str]) -> None:
    """Copy what the same migrations made of the first new file; a file with tables takes its own steps."""
    steps = tuple(migrations)
    if writer.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None:
        _MIGRATE(writer, migrations)
        return
    with _lock:
        if steps in _migrated:
            _migrated[steps].backup(writer)
            return
        _MIGRATE(writer, migrations)
        made = sqlite3.connect(":memory:", check_same_thread=False)
        writer.backup(made)
        _migrated[steps] = made
