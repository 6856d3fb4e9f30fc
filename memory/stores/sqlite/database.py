"""One SQLite file: migrations, one way to write, and two ways to read.

WAL, so that readers never wait for the writer. Transactions run one after another on one
connection. Single statements are read on one connection of their own; longer work reads on a pool
of others.
"""

import errno
import logging
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.resources import files
from pathlib import Path
from traceback import clear_frames
from typing import Final, TypeVar

import aiosqlite
import anyio
import anyio.to_thread

from memory.errors import StoreDamaged, StoreUnavailable
from memory.stores.database import Parameters, SqlDatabase
from memory.stores.sqlite.connections import BUSY_MS, ReaderPool, Writer, connect_blocking
from memory.stores.sqlite.driver_errors import translating_errors

T = TypeVar("T")

SYNCHRONOUS: Final = "FULL"
"""What was committed survives a power cut, not only a killed process."""
_UNSYNCED: Final = "NORMAL"
_ROOM_BYTES: Final = 65_536
"""A disk with less room is full: a turn takes about as much."""
_CHECKPOINT_BUSY_MS: Final = 200
_WHAT_TO_DO: Final = (
    "Restore it from a backup and restart the server; until then the server uses what it can read."
)
_REPLACED: Final = (
    "The database's file was removed or replaced while the server was running, so that what is "
    "stored now"
    " is lost at the next start. Stop the server and put the file back."
)
_LOG_LOST: Final = (
    "{name} was not closed at the last end, and the log {name}-wal is gone: unless another program "
    "has merged it,"
    " what was stored last is lost. Restore both files from a backup if that matters."
)
_log = logging.getLogger(__name__)

FileIdentity = tuple[int, int] | None


def migrations_of(package: str) -> Sequence[str]:
    """Return the `NNNN_name.sql` files of a package, in their order, without gaps from 0001."""
    found = sorted(
        (path.name, path.read_text(encoding="utf-8"))
        for path in files(package).iterdir()
        if path.name.endswith(".sql")
    )
    for number, (name, _) in enumerate(found, start=1):
        assert name.startswith(f"{number:04d}_"), f"{name} is out of order"
    return [sql for _, sql in found]


class Database(SqlDatabase):
    """An open SQLite file. Made by `open_database`; close it."""

    engine = "sqlite"

    def __init__(
        self, path: Path, writer: Writer, reader: aiosqlite.Connection, identity: FileIdentity
    ) -> None:
        self.path = path
        self._identity = identity
        self._writer = writer
        self._reader = reader
        self._readers = ReaderPool(path)
        self._writing = anyio.Lock(fast_acquire=True)

    async def write(self, work: Callable[[sqlite3.Connection], T], *, is_synced: bool = True) -> T:
        """See `SqlDatabase`. Transactions run one after another, in the order of the calls, in the
        writer's thread.
        """
        synchronous = SYNCHRONOUS if is_synced else _UNSYNCED
        return await self._run_writer(partial(_transact_blocking, work, synchronous))

    async def checkpoint(self) -> bool:
        """Move what was committed from the log into the file, and empty the log.

        Deleted text is in neither afterwards. Returns False if a reader still uses an older state,
        so that the log stays; writers wait for that a fifth of a second at most. Raise
        `StoreUnavailable` if the file cannot be written.
        """
        return await self._run_writer(_checkpoint_blocking)

    async def _run_writer(self, work: Callable[[sqlite3.Connection], T]) -> T:
        async with self._writing:
            self._require_open()
            with anyio.CancelScope(shield=True), self._translating_errors("written"):
                result = await self._writer.run(work)
        return result

    async def rows(self, sql: str, parameters: Parameters = ()) -> list[sqlite3.Row]:
        self._require_open()
        with self._translating_errors("read"), suppress(UnicodeEncodeError):
            try:
                return list(await self._reader.execute_fetchall(sql, parameters))
            except sqlite3.Error as exc:
                # its frames hold the open cursor, and with it the state that all later reads would
                # see
                clear_frames(exc.__traceback__)
                raise
        return []

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        self._require_open()
        with self._translating_errors("read"):
            return await self._readers.run(work)

    async def ping(self) -> str | None:
        """Return None when the file can be read and written, else a sentence.

        Really writes: a full disk does not show before the first page is written, and not even then
        while the log beside the file has room for it, so the disk is probed for more. Damage that
        was found once is reported from then on, since it shows only to those who read the damaged
        page.
        """
        if self._damage is not None:
            return f"{self._damage} {_WHAT_TO_DO}"
        try:
            version = int(await self.scalar("PRAGMA user_version"))
            await self.execute(f"PRAGMA user_version={version}")
            with translating_errors("written"):
                await anyio.to_thread.run_sync(_probe_room_blocking, self.path.parent)
            if await anyio.to_thread.run_sync(_identity_blocking, self.path) != self._identity:
                return _REPLACED
        except StoreUnavailable as exc:
            return str(exc)
        return None

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            async with self._writing:
                self._closed = True
                self._readers.close()
                try:
                    await self._reader.close()
                finally:
                    await self._writer.close()
                    await anyio.to_thread.run_sync(_mark_blocking, self.path)

    @contextmanager
    def _translating_errors(self, doing: str) -> Iterator[None]:
        try:
            with translating_errors(doing):
                yield
        except StoreDamaged as exc:
            self.note_damage(exc)
            raise


def _transact_blocking(
    work: Callable[[sqlite3.Connection], T], synchronous: str, writer: sqlite3.Connection
) -> T:
    try:
        writer.execute(f"PRAGMA synchronous={synchronous}")
        writer.execute("BEGIN IMMEDIATE")
        result = work(writer)
        writer.execute("COMMIT")
    except BaseException:
        writer.rollback()
        raise
    return result


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
        writer.execute(f"PRAGMA busy_timeout={BUSY_MS}")
    return not row[0]


async def open_database(path: Path, migrations: Sequence[str]) -> Database:
    """Open a file, created if missing, and bring it up to the last migration.

    Raise `StoreUnavailable` if it cannot be opened, or a newer program has written it.
    """
    writer = Writer(path)
    with translating_errors("opened"):
        try:
            is_short = await anyio.to_thread.run_sync(_has_lost_log_blocking, path)
            identity = await anyio.to_thread.run_sync(_touch_blocking, path)
            await writer.run(partial(_prepare_blocking, migrations=migrations))
            connector = partial(connect_blocking, path, is_reader=True)
            reader = await aiosqlite.Connection(connector, iter_chunk_size=64)
            await anyio.to_thread.run_sync(_mark_blocking, path)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await writer.close()
            raise
    database = Database(path, writer, reader, identity)
    if is_short:
        database.loss = _LOG_LOST.format(name=path.name)
        _log.error("database_log_lost", extra={"reason": database.loss})
    return database


def _has_lost_log_blocking(path: Path) -> bool:
    """Return whether the file was not closed and the log beside it is gone."""
    return _beside(path, "-open").exists() and not _beside(path, "-wal").exists()


def _mark_blocking(path: Path) -> None:
    """Mark a file that is open, by anyone, so that it has a log; unmark one that is not."""
    mark = _beside(path, "-open")
    with suppress(OSError):  # a disk that is full is reported by what needs more room
        if _beside(path, "-wal").exists():
            mark.touch(mode=0o600)
        else:
            mark.unlink(missing_ok=True)


def _beside(path: Path, end: str) -> Path:
    return path.with_name(f"{path.name}{end}")


def _touch_blocking(path: Path) -> FileIdentity:
    """Create the file if it is missing, for this user alone; SQLite gives the files beside it its
    mode.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    return _identity_blocking(path)


def _identity_blocking(path: Path) -> FileIdentity:
    """Return what tells the file from another one in its place; None if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _prepare_blocking(writer: sqlite3.Connection, migrations: Sequence[str]) -> None:
    refuse_newer_blocking(writer, migrations)  # before anything in it is touched
    if writer.execute("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":
        raise StoreUnavailable("The database cannot be opened: its disk does not allow WAL.")
    for pragma in (f"synchronous={SYNCHRONOUS}", "foreign_keys=ON", "secure_delete=ON"):
        writer.execute(f"PRAGMA {pragma}")
    _migrate_blocking(writer, migrations)
    # where the file cannot be opened for writing, SQLite opens it for reading without a word
    writer.execute("BEGIN IMMEDIATE")
    writer.execute(f"PRAGMA user_version={len(migrations)}")
    writer.execute("ROLLBACK")


def refuse_newer_blocking(connection: sqlite3.Connection, migrations: Sequence[str]) -> None:
    """Raise `StoreUnavailable` if a newer program has written the file."""
    if version_blocking(connection) > len(migrations):
        raise StoreUnavailable("The database was written by a newer version of this program.")


def version_blocking(connection: sqlite3.Connection) -> int:
    """Return the number of the last migration that was applied."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _migrate_blocking(writer: sqlite3.Connection, migrations: Sequence[str]) -> None:
    """Apply the missing migrations, each in a transaction of its own with its number.

    SQLite itself reads a migration's statements, so a `;` in a text, a comment or a trigger ends
    none. Where one fails, the caller closes the connection, which rolls it back.
    """
    for number, sql in enumerate(migrations, start=1):
        if number > version_blocking(writer):
            writer.executescript(f"BEGIN IMMEDIATE;\n{sql}")
            writer.execute(f"PRAGMA user_version={number}")
            writer.execute("COMMIT")
