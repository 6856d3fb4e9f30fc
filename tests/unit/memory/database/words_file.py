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
ENDS_S = 5
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
    """Give the names of connections' threads that do not end by themselves."""
    threads = [one for one in threading.enumerate() if "_connection_worker" in one.name]
    for one in threads:
        await anyio.to_thread.run_sync(one.join, ENDS_S)
    return [one.name for one in threads if one.is_alive()]


def peek(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()
