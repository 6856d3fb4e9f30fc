"""Connections to one SQLite file for work that needs several statements: one writer, some readers.

Each piece of work is one function that runs whole in a thread, so that the event loop is visited
once and not once a statement, and nothing on the loop can leave a transaction half done.
"""

import sqlite3
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import anyio
import anyio.to_thread

from memory.errors import StoreUnavailable
from memory.stores.sqlite.grams import grams
from memory.stores.sqlite.query_words import holds_joined
from memory.stores.threads import run_to_end

T = TypeVar("T")

BUSY_MS: Final = 5000
"""How long a statement waits for another process, such as a backup, that has locked the file."""
MAX_READERS: Final = 4
_READER_BUSY_MS: Final = 1000
_STEPS: Final = 40_000
"""Steps of SQLite between two looks at whether a reader's work is still wanted: some milliseconds.
Each look waits for the interpreter's lock."""
_FUNCTIONS: Final[Mapping[str, tuple[int, Callable[..., str | bool]]]] = {
    "grams": (2, grams),
    "holds_words": (2, holds_joined),
}
"""What statements, triggers and migrations may call, with the number of arguments."""


def connect_blocking(
    path: Path | str, *, busy_ms: int = BUSY_MS, is_reader: bool = False
) -> sqlite3.Connection:
    """Open a connection without implicit transactions, usable from any one thread at a time."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.execute(f"PRAGMA busy_timeout={busy_ms}")
    connection.execute(f"PRAGMA query_only={is_reader}")
    add_functions(connection)
    return connection


def add_functions(connection: sqlite3.Connection) -> None:
    """Add the functions that the program's statements and tables call."""
    for name, (arguments, function) in _FUNCTIONS.items():
        connection.create_function(name, arguments, function, deterministic=True)


class Writer:
    """One thread that owns the connection for writing; runs one function after another."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, "sqlite_writer")
        self._connection: sqlite3.Connection | None = None

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the connection, which the first call opens; see `run_to_end`."""
        return await run_to_end(self._thread, self._run_blocking, work)

    async def close(self) -> None:
        """Close the connection and end the thread; idempotent."""
        if self._connection is not None:
            await self.run(sqlite3.Connection.close)
            self._connection = None
        self._thread.shutdown(wait=False)

    def _run_blocking(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            self._connection = connect_blocking(self._path)
        return work(self._connection)


class ReaderPool:
    """Reading connections, opened when needed, for work that may take long and may be cancelled."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._limiter = anyio.CapacityLimiter(MAX_READERS)
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on one snapshot, in a worker thread; when cancelled, its
        statement is stopped.
        """
        cancelled = threading.Event()
        try:
            return await anyio.to_thread.run_sync(
                partial(self._run_blocking, work, cancelled),
                abandon_on_cancel=True,
                limiter=self._limiter,
            )
        finally:
            cancelled.set()

    def close(self) -> None:
        """Close idle connections; a busy one is closed when its work ends. Idempotent."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _run_blocking(
        self, work: Callable[[sqlite3.Connection], T], cancelled: threading.Event
    ) -> T:
        connection = self._take_blocking()
        try:
            connection.set_progress_handler(cancelled.is_set, _STEPS)
            connection.execute("BEGIN")
            return work(connection)
        finally:
            connection.set_progress_handler(None, 0)
            connection.rollback()
            self._put_back(connection)

    def _take_blocking(self) -> sqlite3.Connection:
        with self._lock:
            if self._closed:
                raise StoreUnavailable("The database is closed.")
            if self._idle:
                return self._idle.pop()
        return connect_blocking(self._path, busy_ms=_READER_BUSY_MS, is_reader=True)

    def _put_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()
