"""What a store asks of a database, whichever engine it is.

A transaction is one function that runs whole in a thread on a connection, so that the event loop is
visited once and not once a statement, and nothing on the loop can leave it half done. Statements
are SQL that SQLite and PostgreSQL both read, with `?` or `:name` for values. Columns are integers,
texts, bytes and floating-point numbers; a truth value is 0 or 1.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from memory.errors import StoreDamaged, StoreUnavailable

T = TypeVar("T")
Parameters = Sequence[Any] | Mapping[str, Any]
"""For `?` in their order, or for `:name`."""


class Row(Protocol):
    """A row of a result: its columns by name or place, in their order."""

    def __getitem__(self, key: Any, /) -> Any:
        """Return a column by its name or its place. Raise `LookupError` if there is none."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the values."""

    def keys(self) -> Iterable[str]:
        """Return the names."""


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """How many rows it inserted, changed or deleted."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the rows that are left."""


class Connection(Protocol):
    """What the function of a transaction runs its statements on."""

    def execute(self, sql: str, parameters: Parameters = (), /) -> Cursor:
        """Run a statement. Its error may be raised by what follows, at the latest by the commit."""

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> Cursor:
        """Run a statement that returns no rows with each of the parameters."""


Engine = Literal["sqlite", "postgresql"]


def engine_of(connection: Connection) -> Engine:
    """Return the engine of a connection: SQLite's own has no name of it."""
    engine: Engine = getattr(connection, "engine", "sqlite")
    return engine


@contextmanager
def decoding_rows() -> Iterator[None]:
    """Raise `StoreDamaged` when a stored row cannot be decoded; also usable as a decorator."""
    try:
        yield
    except (ValueError, LookupError, TypeError) as exc:
        raise StoreDamaged("The database cannot be read: it is damaged.") from exc


Rows = Callable[[], list[Any]]
"""Returns the rows of a statement that was sent."""


def send(connection: Connection, sql: str, parameters: Parameters = ()) -> Rows:
    """Run a statement whose rows are looked at when others have been sent, so that one wait is
    enough for all of them.

    SQLite, which waits for nobody, returns them at once: a cursor that an exception keeps open
    would keep later transactions from their end.
    """
    cursor = connection.execute(sql, parameters)
    if engine_of(connection) == "sqlite":
        rows = cursor.fetchall()
        return lambda: rows
    return cursor.fetchall


Values = Callable[[], list[Any]]
"""Returns the values of a statement of one column that was sent."""


def send_for_values(connection: Connection, sql: str, parameters: Parameters = ()) -> Values:
    """Run a statement of one column of numbers or texts, as `send` does.

    SQLite gives all of them in one row: its driver waits for the interpreter's lock at each.
    """
    if engine_of(connection) == "sqlite":
        in_one = f"WITH given (one) AS ({sql}) SELECT json_group_array(one) FROM given"  # noqa: S608  of our own
        row = connection.execute(in_one, parameters).fetchone()
        values: list[Any] = json.loads(row[0])
        return lambda: values
    cursor = connection.execute(sql, parameters)
    return lambda: [row[0] for row in cursor.fetchall()]


class SqlDatabase(ABC):
    """An open database. Close it."""

    engine: ClassVar[Engine]
    loss: str | None = None
    """What was lost before it was opened, in words for the operator."""
    _damage: str | None = None
    _closed = False

    @abstractmethod
    async def write(self, work: Callable[[Connection], T], *, is_synced: bool = True) -> T:
        """Run `work` in one transaction and commit it; on any exception nothing is written.

        `work` may run more than once, and only its last run counts: it executes statements and
        changes nothing else. Once begun, it is not cancelled. The effect is that of transactions
        one after another. One that is not synced survives the end of the process at once, but a cut
        of the power only when a synced one has followed. Raise `StoreUnavailable` if the database
        cannot be written, `StoreConflict` if a constraint forbids it, and `CommitUnknown` if all of
        it may be written, which a file always knows.
        """

    @abstractmethod
    async def rows(self, sql: str, parameters: Parameters = ()) -> Sequence[Any]:
        """Return rows; sees everything that was committed before the call. Never waits for a
        writer.

        A parameter with half a surrogate pair, which no database holds, is in no row. Raise
        `StoreUnavailable` if the database cannot be read, or is closed.
        """

    @abstractmethod
    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run several reading statements on one snapshot, in a worker thread; cancelling stops
        them.

        Raise `StoreUnavailable` if the database cannot be read, or is closed.
        """

    @abstractmethod
    async def checkpoint(self) -> bool:
        """Remove deleted text from the files, where that is the program's task; False if not yet.

        Raise `StoreUnavailable` if the database cannot be written.
        """

    @abstractmethod
    async def ping(self) -> str | None:
        """Return None when the database can be read and written, else a sentence."""

    @abstractmethod
    async def close(self) -> None:
        """Finish the writes in progress, refuse those that wait, and close it; idempotent."""

    def note_damage(self, damage: StoreDamaged) -> None:
        """Make `ping` report damage that was found."""
        self._damage = str(damage)

    def _require_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("The database is closed.")

    async def values(
        self, decode: Callable[[Any], T], sql: str, parameters: Parameters = ()
    ) -> list[T]:
        """Return rows as values. Raise `StoreDamaged` if one cannot be decoded, else as `rows`
        does.
        """
        found = await self.rows(sql, parameters)
        try:
            with decoding_rows():
                return [decode(row) for row in found]
        except StoreDamaged as exc:
            self.note_damage(exc)
            raise

    async def execute(
        self, sql: str, parameters: Parameters = (), *, is_synced: bool = True
    ) -> None:
        """Run one statement in a transaction of its own; raises as `write` does."""
        await self.write(lambda writer: writer.execute(sql, parameters), is_synced=is_synced)

    async def execute_many(
        self, sql: str, rows: Iterable[Parameters], *, is_synced: bool = True
    ) -> None:
        """Run one statement with each of the rows, all or none; raises as `write` does."""
        given = list(rows)
        await self.write(lambda writer: writer.executemany(sql, given), is_synced=is_synced)

    async def row(self, sql: str, parameters: Parameters = ()) -> Any:
        """Return the first row, or None."""
        found = await self.rows(sql, parameters)
        return found[0] if found else None

    async def scalar(self, sql: str, parameters: Parameters = ()) -> Any:
        """Return the first column of the first row; None if there is no row."""
        found = await self.rows(sql, parameters)
        return found[0][0] if found else None

    async def value(
        self, decode: Callable[[Any], T], sql: str, parameters: Parameters = ()
    ) -> T | None:
        """Return the first row as a value, or None; raises as `values` does."""
        found = await self.values(decode, sql, parameters)
        return found[0] if found else None
