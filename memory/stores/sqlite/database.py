"""One SQLite file: a writer and a reader, migrations, and one way to write.

WAL, so that readers never wait for the writer. `synchronous=FULL`: what was committed survives a
power cut, not only a killed process. One writer connection behind one lock; a transaction is one
function, run whole in that connection's thread: the loop is visited once and not once a statement,
and nothing that happens on the loop can leave a transaction half done.
"""

import errno
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar, cast

import aiosqlite
import anyio

from memory.errors import StoreConflict, StoreDamaged, StoreUnavailable
from memory.stores.sqlite.grams import grams

Row = aiosqlite.Row
T = TypeVar("T")
Parameters = Sequence[Any] | Mapping[str, Any]
"""For `?` in their order, or for `:name`."""

_ROOM_BYTES = 65_536
"""A disk with less room is full: a turn takes about as much."""
_CHECKPOINT_BUSY_MS = 200
_BUSY_MS = 5000
"""So long a statement waits for another process, a backup say, that has the file."""

_WHAT_TO_DO = (
    "Restore it from a backup and restart the server; until then the server uses what it can read."
)
FUNCTIONS: Mapping[str, tuple[int, Callable[..., str]]] = {
    "casefold": (1, str.casefold),
    "grams": (2, grams),
}
"""What statements, triggers and migrations may call, with the number of arguments."""
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_REASONS: dict[int | None, str] = {
    sqlite3.SQLITE_BUSY: "another process holds it",
    sqlite3.SQLITE_LOCKED: "another process holds it",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_PERM: "it is read-only",
    sqlite3.SQLITE_IOERR: "the disk failed or is full",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CORRUPT: "it is damaged",
    sqlite3.SQLITE_NOTADB: "it is damaged or something else",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_NOMEM: "there is no memory left",
}


def migrations_of(package: str) -> Sequence[str]:
    """Read the `NNNN_name.sql` files of a package, in their order, without gaps from 0001."""
    found = sorted(
        (one.name, one.read_text(encoding="utf-8"))
        for one in files(package).iterdir()
        if one.name.endswith(".sql")
    )
    for number, (name, _) in enumerate(found, start=1):
        assert name.startswith(f"{number:04d}_"), f"{name} is out of order"
    return [sql for _, sql in found]


@contextmanager
def translating(doing: str) -> Iterator[None]:
    """Turn the driver's errors into ours, in words that name nothing of this machine."""
    try:
        yield
    except OSError as exc:  # of the file itself, before SQLite sees it
        is_full = exc.errno in {errno.ENOSPC, errno.EDQUOT}
        reason = _REASONS[sqlite3.SQLITE_FULL] if is_full else exc.strerror
        raise StoreUnavailable(f"The database cannot be {doing}: {reason}.") from exc
    except sqlite3.IntegrityError as exc:
        raise StoreConflict("What is stored already contradicts this.") from exc
    except UnicodeDecodeError as exc:  # SQLite's message quotes the file
        raise StoreDamaged(f"The database cannot be {doing}: it is damaged.") from exc
    except sqlite3.Error as exc:
        code = getattr(exc, "sqlite_errorcode", None)
        primary = code & 0xFF if isinstance(code, int) else None
        if _is_foreign(str(exc)):
            primary = sqlite3.SQLITE_CORRUPT
        error = StoreDamaged if primary in _DAMAGED else StoreUnavailable
        reason = _REASONS.get(primary, "it failed")
        raise error(f"The database cannot be {doing}: {reason}.") from exc


def _is_foreign(message: str) -> bool:
    """Return whether the file holds text or a schema that this program did not write.

    These have no error code of their own. The statements are fixed, so a table or a column can be
    missing only from the file.
    """
    signs = ("Could not decode", "no such table", "no such column")
    return message.startswith(signs) or " has no column" in message


@contextmanager
def understanding_rows() -> Iterator[None]:
    """Raise `StoreDamaged` when a stored row cannot be turned into a value; also a decorator."""
    try:
        yield
    except (ValueError, LookupError, TypeError) as exc:
        raise StoreDamaged("The database cannot be read: it is damaged.") from exc


FileIdentity = tuple[int, int] | None

_REPLACED = (
    "The database's file was removed or replaced while the server was running, so that what is stored now"
    " is lost at the next start. Stop the server and put the file back."
)


class Database:
    """An open SQLite file. Made by `open_database`; close it."""

    def __init__(
        self,
        path: Path,
        writer: aiosqlite.Connection,
        reader: aiosqlite.Connection,
        identity: FileIdentity,
    ) -> None:
        self.path = path
        self._identity = identity
        self._writer = writer
        self._reader = reader
        self._writing = anyio.Lock()
        self._closed = False
        self._damage: str | None = None

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in one transaction and commit it; on any exception nothing is written.

        `work` runs in the writer's thread: statements alone, nothing of the loop's. Once begun it
        is not cut short. Transactions run one after another, in the order of the calls.

        Raises:
            StoreUnavailable: the file cannot be written (full, read-only, damaged, closed).
            StoreConflict: a constraint forbids it.
        """
        async with self._writing:
            self._require_open()
            with anyio.CancelScope(shield=True):
                result = await self._transact(work)
        return result

    async def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._noting_damage(), translating("written"):
            try:
                return await _in_thread_of(self._writer, partial(_transact_blocking, work))
            except BaseException:
                # a task that is cancelled from outside of anyio leaves the function running: this
                # waits behind it, so that nobody reads what is not yet decided
                await self._writer.rollback()
                raise

    async def rows(self, sql: str, parameters: Parameters = ()) -> list[aiosqlite.Row]:
        """Read rows; sees everything that was committed before the call. Waits for no writer.

        Raises:
            StoreUnavailable: the file cannot be read, or is closed.
        """
        self._require_open()
        with self._noting_damage(), translating("read"):
            return list(await self._reader.execute_fetchall(sql, parameters))

    async def row(self, sql: str, parameters: Parameters = ()) -> aiosqlite.Row | None:
        """Read the first row, or None."""
        found = await self.rows(sql, parameters)
        return found[0] if found else None

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run several reading statements on one snapshot; `work` runs in the reader's thread.

        Raises:
            StoreUnavailable: the file cannot be read, or is closed.
        """
        self._require_open()
        with self._noting_damage(), translating("read"):
            return await _in_thread_of(self._reader, partial(_read_blocking, work))

    async def values(
        self, read: Callable[[aiosqlite.Row], T], sql: str, parameters: Parameters = ()
    ) -> list[T]:
        """Read rows as values.

        Raises:
            StoreDamaged: `read` does not understand a row.
            StoreUnavailable: the file cannot be read, or is closed.
        """
        found = await self.rows(sql, parameters)
        with self._noting_damage(), understanding_rows():
            return [read(row) for row in found]

    async def checkpoint(self) -> bool:
        """Bring what was committed into the file, and empty the log beside it.

        What was deleted is in neither afterwards. False: somebody else reads an older state just now, and the
        log stays; writers wait for that a fifth of a second at most.

        Raises:
            StoreUnavailable: the file cannot be written.
        """
        async with self._writing:
            self._require_open()
            with (
                anyio.CancelScope(shield=True),
                self._noting_damage(),
                translating("written"),
            ):
                is_empty = await _in_thread_of(self._writer, _checkpoint_blocking)
        return is_empty

    async def ping(self) -> str | None:
        """None when the file can be read and written, else a sentence.

        Really writes: a full disk does not show before the first page is written. And not even then
        while the log beside the file has room for it, so room for more is looked for, too. What was once found
        damaged stays so: it is met only where somebody reads just that page.
        """
        if self._damage is not None:
            return f"{self._damage} {_WHAT_TO_DO}"
        try:
            found = await self.rows("PRAGMA user_version")
            version = int(found[0][0])
            await self.write(lambda writer: writer.execute(f"PRAGMA user_version={version}"))
            with translating("written"):
                await anyio.to_thread.run_sync(_probe_room_blocking, self.path.parent)
            if await anyio.to_thread.run_sync(_identity_blocking, self.path) != self._identity:
                return _REPLACED
        except StoreUnavailable as exc:
            return str(exc)
        return None

    async def close(self) -> None:
        """Finish what is being written and close the file; idempotent.

        Whoever waits to write is refused.
        """
        with anyio.CancelScope(shield=True):
            async with self._writing:
                self._closed = True
                try:
                    await self._reader.close()
                finally:
                    await self._writer.close()

    @contextmanager
    def _noting_damage(self) -> Iterator[None]:
        try:
            yield
        except StoreDamaged as exc:
            self.note_damage(exc)
            raise

    def note_damage(self, damage: StoreDamaged) -> None:
        """Take note of what somebody met in the file, for `ping` to tell."""
        self._damage = str(damage)

    def _require_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("The database is closed.")


async def _in_thread_of(
    connection: aiosqlite.Connection, work: Callable[[sqlite3.Connection], T]
) -> T:
    """Run a function in a connection's own thread; the driver has no public way to do so."""
    own = connection._conn  # noqa: SLF001
    return cast("T", await connection._execute(work, own))  # type: ignore[no-untyped-call]  # noqa: SLF001


def _transact_blocking(work: Callable[[sqlite3.Connection], T], writer: sqlite3.Connection) -> T:
    try:
        writer.execute("BEGIN IMMEDIATE")
        result = work(writer)
        writer.execute("COMMIT")
    except BaseException:
        writer.rollback()
        raise
    return result


def _read_blocking(work: Callable[[sqlite3.Connection], T], reader: sqlite3.Connection) -> T:
    reader.execute("BEGIN")
    try:
        return work(reader)
    finally:
        reader.rollback()


def _probe_room_blocking(directory: Path) -> None:
    """Write and drop a nameless file; raise `OSError` when the disk has no room for it."""
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        if file.write(bytes(_ROOM_BYTES)) < _ROOM_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _checkpoint_blocking(writer: sqlite3.Connection) -> bool:
    writer.execute(f"PRAGMA busy_timeout={_CHECKPOINT_BUSY_MS}")
    try:
        row = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        writer.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
    return not row[0]


async def open_database(path: Path, migrations: Sequence[str]) -> Database:
    """Open a file, made if missing, and bring it up to the last migration.

    Raises:
        StoreUnavailable: it cannot be opened, or a newer program has written it.
    """
    with translating("opened"):
        identity = await anyio.to_thread.run_sync(_touch_blocking, path)
        writer = await _connect(path)
        try:
            await _prepare(writer, migrations)
            reader = await _open_reader(path)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await writer.close()
            raise
    return Database(path, writer, reader, identity)


def _touch_blocking(path: Path) -> FileIdentity:
    """Make the file if it is missing, for this user alone; the files beside it take after it."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    return _identity_blocking(path)


def _identity_blocking(path: Path) -> FileIdentity:
    """Return what tells a file from another that takes its place; None if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


async def _connect(path: Path) -> aiosqlite.Connection:
    connection = aiosqlite.connect(path, isolation_level=None)
    try:
        return await connection
    except BaseException:
        # the driver ends the thread but does not wait for it: it would speak to a closed loop
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(connection._thread.join)  # noqa: SLF001
        raise


async def _add_functions(connection: aiosqlite.Connection) -> None:
    for name, (arguments, function) in FUNCTIONS.items():
        await connection.create_function(name, arguments, function, deterministic=True)


async def _prepare(writer: aiosqlite.Connection, migrations: Sequence[str]) -> None:
    writer.row_factory = aiosqlite.Row
    await _add_functions(writer)
    await writer.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
    await _refuse_newer(writer, len(migrations))  # before anything in it is touched
    mode = list(await writer.execute_fetchall("PRAGMA journal_mode=WAL"))
    if mode[0][0] != "wal":
        raise StoreUnavailable("The database cannot be opened: its disk does not allow WAL.")
    for pragma in ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
        await writer.execute(f"PRAGMA {pragma}")
    await _migrate(writer, migrations)
    # where the file cannot be opened for writing, SQLite opens it for reading without a word
    await writer.execute("BEGIN IMMEDIATE")
    await writer.execute(f"PRAGMA user_version={len(migrations)}")
    await writer.execute("ROLLBACK")


async def _open_reader(path: Path) -> aiosqlite.Connection:
    reader = await _connect(path)
    try:
        reader.row_factory = aiosqlite.Row
        await reader.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        await reader.execute("PRAGMA query_only=ON")
        await _add_functions(reader)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await reader.close()
        raise
    return reader


async def _version(writer: aiosqlite.Connection) -> int:
    rows = list(await writer.execute_fetchall("PRAGMA user_version"))
    return int(rows[0][0])


async def _refuse_newer(writer: aiosqlite.Connection, known: int) -> None:
    if await _version(writer) > known:
        raise StoreUnavailable("The database was written by a newer version of this program.")


async def _migrate(writer: aiosqlite.Connection, migrations: Sequence[str]) -> None:
    """Apply what is missing, each migration in a transaction of its own with its number.

    SQLite itself reads a migration's statements, so a `;` in a text, a comment or a trigger ends
    none; `executescript` commits nothing by itself but what was open before it. Where one fails, the
    caller closes the connection, and with it goes what was begun.
    """
    for number, sql in enumerate(migrations, start=1):
        if number <= await _version(writer):
            continue
        await writer.executescript(f"BEGIN IMMEDIATE;\n{sql}")
        await writer.execute(f"PRAGMA user_version={number}")
        await writer.execute("COMMIT")
