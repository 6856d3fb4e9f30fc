"""Connections to one PostgreSQL database, each used by one thread at a time."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread
import psycopg
from psycopg import sql
from psycopg.generators import send

from memory.errors import StoreUnavailable
from memory.stores.postgres.translation import Row, adapt, row_factory, translated
from memory.stores.threads import run_to_end

T = TypeVar("T")
Driver = psycopg.Connection[Any]
Cursor = psycopg.Cursor[Any]

MAX_WRITERS: Final = 4
MAX_READERS: Final = 4
_CANCEL_S: Final = 2.0
_BEGIN_READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
PARAMETERS: Final[dict[str, Any]] = {
    "application_name": "candor",
    "client_encoding": "utf8",
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""A connection that leads nowhere is noticed after some ten seconds."""
UNREADABLE: Final = (
    "The database cannot be opened: its address must be one such as postgresql://user@host/name."
)
_NO_DESCRIPTOR: Final = "The database cannot be read: this program may open no more files."
_SESSION: Final = (
    "SET search_path TO {schema};"
    " SET lock_timeout TO '5s';"
    # a program that was stopped in the middle holds its locks no longer
    " SET idle_in_transaction_session_timeout TO '10s';"
    " SET default_transaction_read_only TO {is_reader}"
)


def connect_blocking(url: str, schema: str, *, is_reader: bool = False) -> Driver:
    """Open a connection without implicit transactions; statements name tables of `schema`."""
    try:
        connection: Driver = psycopg.connect(
            url, autocommit=True, row_factory=row_factory, **PARAMETERS
        )
    except psycopg.ProgrammingError:  # its text quotes the address, and the password in it
        raise StoreUnavailable(UNREADABLE) from None
    try:
        adapt(connection)
        session = sql.SQL(_SESSION).format(
            schema=sql.Identifier(schema), is_reader=sql.Literal("on" if is_reader else "off")
        )
        connection.execute(session, prepare=False)
    except BaseException:
        connection.close()
        raise
    return connection


class _Cursor(psycopg.Cursor[Row]):
    """The result of a statement of a pipeline, which is waited for when it is looked at."""

    pipeline: psycopg.Pipeline | None = None

    @property
    def rowcount(self) -> int:
        """How many rows it inserted, changed or deleted; the driver would not wait for it."""
        if self.pipeline is not None:
            self.pipeline.sync()
        return super().rowcount


class Statements:
    """A connection as the functions of transactions see it."""

    engine: Final = "postgresql"

    def __init__(self, connection: Driver, pipeline: psycopg.Pipeline | None = None) -> None:
        self._connection = connection
        self._pipeline = pipeline

    def execute(self, statement: str, parameters: Any = (), /) -> Cursor:
        """Run a statement written for SQLite."""
        return self._executed(self._cursor(), translated(statement), parameters)

    def executemany(self, statement: str, parameters: Any, /) -> Cursor:
        """Run a statement with each of the parameters, all sent before the first answer."""
        cursor, told = self._cursor(), translated(statement)
        if self._pipeline is None:
            cursor.executemany(told, parameters)
        else:
            for given in parameters:
                self._executed(cursor, told, given)
        return cursor

    def _executed(self, cursor: _Cursor, statement: Any, parameters: Any) -> Cursor:
        """Run a statement, and have it leave whole.

        The driver may keep the end of a long one, and then waits for results alone, which the
        server has not begun to make.
        """
        cursor.execute(statement, parameters)
        if self._pipeline is not None and self._connection.pgconn.flush():
            self._connection.wait(send(self._connection.pgconn))
        return cursor

    def wait_blocking(self) -> None:
        """Wait for the results of all statements."""
        if self._pipeline is not None:
            self._pipeline.sync()

    def _cursor(self) -> _Cursor:
        cursor = _Cursor(self._connection)
        cursor.pipeline = self._pipeline
        return cursor


@contextmanager
def pipelined_blocking(connection: Driver) -> Iterator[Statements]:
    """Send each statement at once, and wait for its result when it is looked at; all are
    waited for at the end of the block.

    An error is raised by a later statement, or at the end; the statements after the one that failed
    are not run.
    """
    with ExitStack() as opened:
        pipeline = opened.enter_context(connection.pipeline())
        try:
            yield Statements(connection, pipeline)
        except BaseException:
            with suppress(psycopg.Error):  # the driver would log what follows from the error
                opened.close()
            raise


class _Pool:
    """Connections that are opened when needed and kept."""

    def __init__(self, connect: Callable[[], Driver]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._idle: list[Driver] = []
        self._closed = False

    def use_blocking(self, use: Callable[[Driver], T]) -> T:
        """Return what `use` does with a connection; a transaction that it leaves open is undone.

        If the connection was lost, perhaps while it was idle, as when the server restarts, or if
        a newer program has changed the tables since its statements were prepared, `use` is called
        again with another one. It raises no error of the driver if it must not be.
        """
        while True:
            kept = self._take_blocking()
            connection = kept or self._connect()
            try:
                return use(connection)
            except psycopg.errors.FeatureNotSupported:  # "cached plan must not change result type"
                if kept is None:
                    raise
                connection.close()
            except psycopg.Error:
                if kept is None or not connection.closed:
                    raise
            finally:
                self._take_back_blocking(connection)

    def _take_back_blocking(self, connection: Driver) -> None:
        with suppress(psycopg.Error):
            connection.rollback()
        with self._lock:
            if not self._closed and not connection.closed:
                self._idle.append(connection)
                return
        connection.close()

    def close_blocking(self) -> None:
        """Close idle connections; a busy one is closed when its work ends. Idempotent."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take_blocking(self) -> Driver | None:
        with self._lock:
            if self._closed:
                raise StoreUnavailable("The database is closed.")
            return self._idle.pop() if self._idle else None


class WriterPool(_Pool):
    """Runs transactions, each whole in a thread."""

    def __init__(self, url: str, schema: str) -> None:
        super().__init__(partial(connect_blocking, url, schema))
        self._threads = ThreadPoolExecutor(MAX_WRITERS, "postgres_writer")

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread; see `run_to_end`."""
        return await run_to_end(self._threads, work)

    async def close(self) -> None:
        """Wait for the work that has begun, and close; idempotent."""
        await anyio.to_thread.run_sync(self.close_blocking)
        await anyio.to_thread.run_sync(self._threads.shutdown)


class _Reading:
    """One piece of work of a reader, which may be cancelled by another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: tuple[Driver, socket.socket] | None = None
        """The connection, and a second handle of its socket."""
        self._is_cut = False
        self.is_over = False

    def use_blocking(self, use: Callable[[Driver], T], connection: Driver) -> T:
        """Return what `use` does with a connection; its statements may be cancelled."""
        with _second_handle(connection) as way:
            with self._lock:
                if self.is_over:
                    raise StoreUnavailable("Nobody waits for this any more.")
                self._used = (connection, way)
            try:
                return use(connection)
            finally:
                with self._lock:
                    self._used = None
                    if self._is_cut:
                        connection.close()

    def cancel_blocking(self) -> None:
        """Stop the statement that runs, and cut its connection's way to the server.

        It is closed by the thread that uses it: libpq frees at once what that thread may read.
        """
        with self._lock:
            self.is_over = True
            if self._used is not None:
                connection, way = self._used
                self._is_cut = True
                with suppress(psycopg.Error):
                    connection.cancel_safe(timeout=_CANCEL_S)
                with suppress(OSError):
                    way.shutdown(socket.SHUT_RDWR)


def _second_handle(connection: Driver) -> socket.socket:
    """Return another handle of a connection's socket, which closes nothing of it."""
    try:
        return socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM)
    except OSError as exc:
        raise StoreUnavailable(_NO_DESCRIPTOR) from exc


class ReaderPool(_Pool):
    """Runs work that reads, in worker threads; when cancelled, its statement is stopped."""

    def __init__(self, url: str, schema: str) -> None:
        super().__init__(partial(connect_blocking, url, schema, is_reader=True))
        self._limiter = anyio.CapacityLimiter(MAX_READERS)

    async def rows(self, statement: str, parameters: Any) -> list[Row]:
        """Return the rows of one statement."""
        return await self._run(lambda it: Statements(it).execute(statement, parameters).fetchall())

    async def run(self, work: Callable[[Statements], T]) -> T:
        """Run `work` on one snapshot."""
        return await self._run(partial(_read_blocking, work))

    async def _run(self, use: Callable[[Driver], T]) -> T:
        reading = _Reading()
        try:
            return await anyio.to_thread.run_sync(
                partial(self._run_blocking, reading, use),
                abandon_on_cancel=True,
                limiter=self._limiter,
            )
        finally:
            if not reading.is_over:
                threading.Thread(target=reading.cancel_blocking, daemon=True).start()

    def _run_blocking(self, reading: _Reading, use: Callable[[Driver], T]) -> T:
        try:
            return self.use_blocking(partial(reading.use_blocking, use))
        finally:
            reading.is_over = True


def _read_blocking(work: Callable[[Statements], T], connection: Driver) -> T:
    with pipelined_blocking(connection) as statements:
        connection.execute(_BEGIN_READING, prepare=False)
        found = work(statements)
        connection.execute("COMMIT")
    return found
