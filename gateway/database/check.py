"""Look at the configured databases, and bring them up to date."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import anyio

from gateway.database.ends import End, Files
from gateway.database.parts import PARTS, Part
from gateway.instance import InstanceLock
from gateway.lost_data import refuse_lost_database_blocking
from gateway.settings import Settings
from gateway.storage import memory_storage, open_storage, postgres_url
from memory.errors import StoreUnavailable
from memory.stores.database import SqlDatabase
from memory.stores.sqlite.database import open_database
from memory.stores.sqlite.driver_errors import translating_errors
from memory.stores.sqlite.integrity import examine_blocking, look_at_blocking

Say = Callable[[str], None]


def check_blocking(settings: Settings, say: Say) -> bool:
    """Print for each database whether it can be opened, its version and its rows; change nothing.

    Return whether both can be opened and are of this program's version; and, of files, whether
    they are whole.
    """
    found = [_check_part(part, settings, say) for part in PARTS]
    return all(found)


def _check_part(part: Part, settings: Settings, say: Say) -> bool:
    name = part.file if settings.database_url is None else f"schema {part.schema}"
    try:
        with _looking(part, settings) as end:
            steps = part.steps(is_file=True)
            if end is not None and end.is_file and end.version() == len(steps):
                examine_blocking(settings.data_dir / part.file, steps)
            return _report(end, part, name, say)
    except StoreUnavailable as exc:
        say(f"{name}: {exc}")
        return False


def _report(end: End | None, part: Part, name: str, say: Say) -> bool:
    found = None if end is None else end.version()
    wanted = part.version(is_file=end is None or end.is_file)
    if end is None or found is None:
        say(f"{name}: there is none yet; the server makes it, and so does `candor db migrate`.")
        return False
    verdict = "as this program needs"
    if found < wanted:
        verdict = f"older than this program's {wanted}: run `candor db migrate`"
    if found > wanted:
        verdict = f"newer than this program's {wanted}: update the program"
    say(f"{name}: version {found}, {verdict}")
    if found == wanted:
        for table in part.tables:
            say(f"  {table}: {end.count(table)} rows")
    return found == wanted


@contextmanager
def _looking(part: Part, settings: Settings) -> Iterator[End | None]:
    """Open a part to read it; None if there is no file."""
    if settings.database_url is not None:
        url = postgres_url(settings)
        from gateway.database.postgres import looked_at  # noqa: PLC0415  psycopg is an extra

        with looked_at(url) as schemas:
            schemas.use(part)
            yield schemas
        return
    path = settings.data_dir / part.file
    if not path.exists():
        yield None
        return
    with translating_errors("opened"), closing(look_at_blocking(path)) as connection:
        connection.row_factory = sqlite3.Row
        files = Files(connection, is_alone=True)
        files.use(part)
        yield files


def examine_files_blocking(settings: Settings) -> Iterator[tuple[Part, StoreUnavailable]]:
    """Yield the databases that are files, and that a start could not use whole, each with the
    reason; change nothing.
    """
    for part in PARTS:
        path = settings.data_dir / part.file
        if settings.database_url is None and path.exists():
            try:
                examine_blocking(path, part.steps(is_file=True))
            except StoreUnavailable as exc:
                yield part, exc


def migrate_blocking(settings: Settings, say: Say) -> None:
    """Bring both databases to this program's version, and say what was done.

    Raise `StartError` if a server uses them, or the conversations were lost; `StoreUnavailable` if
    they cannot be opened.
    """
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if warning := refuse_lost_database_blocking(settings):
        say(warning)
    with closing(InstanceLock(settings.data_dir)):
        before = [_version(part, settings) for part in PARTS]
        anyio.run(_open_both, settings)
    for part, version in zip(PARTS, before, strict=True):
        is_file = settings.database_url is None
        name, now = part.file if is_file else f"schema {part.schema}", part.version(is_file=is_file)
        if version is None:
            say(f"{name}: made, version {now}")
        elif version == now:
            say(f"{name}: version {now} already")
        else:
            say(f"{name}: from version {version} to {now}")


def _version(part: Part, settings: Settings) -> int | None:
    with _looking(part, settings) as end:
        return None if end is None else end.version()


async def _open_both(settings: Settings) -> None:
    conversations = await open_storage(settings, serves=True)
    try:
        memory = await _open_memory(settings)
        await memory.close()
    finally:
        await conversations.close()


async def _open_memory(settings: Settings) -> SqlDatabase:
    in_postgres = memory_storage(settings)
    if in_postgres is not None:
        return await in_postgres()
    part = PARTS[1]
    return await open_database(settings.data_dir / part.file, part.steps(is_file=True))
