"""A file with one table of words, opened again and again, and looked at past the program."""

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio.to_thread

from memory.stores.sqlite.database import Database, open_database

TABLE = "CREATE TABLE words (word TEXT PRIMARY KEY) STRICT;"
WAIT_S = 30
ENDS_S = 30
LEFT: list[Database] = []


async def opened(path: Path, steps: Sequence[str]) -> Database:
    database = await open_database(path, steps)
    LEFT.append(database)
    return database


async def insert(database: Database, *words: str) -> None:
    def work(writer: sqlite3.Connection) -> None:
        for word in words:
            writer.execute("INSERT INTO words VALUES (?)", (word,))

    await database.write(work)


async def words_of(database: Database) -> list[str]:
    return [row["word"] for row in await database.rows("SELECT word FROM words ORDER BY rowid")]


async def threads_left() -> list[str]:
    """Return the names of connections' threads that do not end by themselves."""
    threads = [
        thread
        for thread in threading.enumerate()
        if "_connection_worker" in thread.name or "sqlite_writer" in thread.name
    ]
    for thread in threads:
        await anyio.to_thread.run_sync(thread.join, ENDS_S)
    return [thread.name for thread in threads if thread.is_alive()]


def peek(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()
