"""Copy both databases between the files and PostgreSQL, and compare what was written.

All tables are copied, compared and committed in one transaction of the target, so a copy that is
cut off at any point leaves it empty or whole.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from typing import Any, Final, Literal

from gateway.conversations.sql.search_rebuild import rebuild_search_blocking
from gateway.database.ends import End, Files, source_files, target_files
from gateway.database.parts import PARTS, Part
from gateway.errors import StartError
from gateway.instance import InstanceLock
from gateway.lost_data import DATABASE
from gateway.settings import Settings
from gateway.storage import postgres_url
from memory.service.rebuilding import index_all_blocking

Target = Literal["postgresql", "files"]
Say = Callable[[str], None]
_AT_ONCE: Final = 500


def copy_blocking(target: Target, settings: Settings, say: Say) -> None:
    """Copy the rows of both databases to an empty target.

    Raise `StartError` if a server uses either side, the target is not empty, the source is missing
    or of another version, or a table differs; `StoreUnavailable` if a side cannot be used. Nothing
    is written then.
    """
    url = postgres_url(settings)
    from gateway.database.postgres import (  # noqa: PLC0415  psycopg is an extra
        source_schemas,
        target_schemas,
    )

    with ExitStack() as opened:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        opened.enter_context(closing(InstanceLock(settings.data_dir)))
        if target == "postgresql":
            _require_files(settings)
            source: End = opened.enter_context(source_files(settings.data_dir))
            _copy_blocking(source, opened.enter_context(target_schemas(url)), say)
        else:
            source = opened.enter_context(source_schemas(url))
            _copy_blocking(source, opened.enter_context(target_files(settings.data_dir)), say)
    say(f"The copy is whole: each table of {PARTS[0].file} and {PARTS[1].file} has the same rows.")


def _require_files(settings: Settings) -> None:
    for part in PARTS:
        if not (settings.data_dir / part.file).exists():
            raise StartError(f"There is no {part.file} in CANDOR_DATA_DIR: nothing can be copied.")


def _copy_blocking(source: End, target: End, say: Say) -> None:
    for part in PARTS:
        source.use(part)
        target.use(part)
        _require_version(source, part)
        if target.version() is None:
            target.make()
        _require_version(target, part)
        _require_empty(target, part)
        numbers = source.numbers()
        with target.without_triggers():
            for table in part.tables:
                count = _copy_table_blocking(source, target, table)
                say(f"{part.file} {table}: {count} rows")
            target.set_numbers(numbers)
        if part.file == DATABASE:
            rebuild_search_blocking(target.connection)
        else:
            index_all_blocking(target.connection)


def _require_version(end: End, part: Part) -> None:
    found, wanted = end.version(), part.version(is_file=end.is_file)
    if found is None:
        raise StartError(f"{_at(end)} has no tables of {part.file}: nothing can be copied.")
    if found > wanted:
        raise StartError(f"{_at(end)} was written by a newer version of this program; update it.")
    if found < wanted:
        raise StartError(
            f"{_at(end)} was written by an older version of this program; run `candor db migrate` "
            "on it first."
        )


def _require_empty(target: End, part: Part) -> None:
    for table in part.tables:
        if target.count(table):
            raise StartError(
                f"{_at(target)} is not empty: the table {table} of {part.file} has rows. Copy to "
                "an empty one."
            )


def _at(end: End) -> str:
    return end.name[0].upper() + end.name[1:]


def _copy_table_blocking(source: End, target: End, table: str) -> int:
    """Copy a table and compare it with the source; return how many rows it has.

    Raise `StartError` if the target has other rows than the source.
    """
    files = source if isinstance(source, Files) else target
    assert isinstance(files, Files), "one side is files"
    columns = files.columns(table)
    read: list[bytes] = []
    rows = source.rows(table, columns)
    while some := list(islice(rows, _AT_ONCE)):
        read.extend(map(_digest, some))
        target.insert(table, columns, some)
    if target.count(table) != len(read) or _hash(read) != hash_of(target.rows(table, columns)):
        raise StartError(
            f"The table {table} differs after it was copied: nothing was written. Nothing but "
            f"Candor may change {target.name} meanwhile."
        )
    return len(read)


def hash_of(rows: Iterable[Sequence[Any]]) -> str:
    """Return a hash of rows that is the same in whatever order they come.

    It is made of the values, so that both engines have the same; the order is that of the rows'
    own hashes, since the engines sort some texts differently.
    """
    return _hash(map(_digest, rows))


def _hash(digests: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()


def _digest(row: Sequence[Any]) -> bytes:
    return hashlib.sha256(b"".join(_parts(row))).digest()


def _parts(row: Sequence[Any]) -> Iterator[bytes]:
    """Yield each value behind its type and length."""
    for value in row:
        data = value if isinstance(value, bytes) else str(value).encode()
        yield f"{type(value).__name__} {len(data)} ".encode()
        yield data
