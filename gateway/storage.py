"""The database of conversations and users: a file in the data directory, or PostgreSQL."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Final

import anyio.to_thread

from gateway.conversations import migrations
from gateway.conversations.doorbell import Notifications
from gateway.conversations.migrations import postgres
from gateway.errors import SettingsError, StartError
from gateway.lost_data import DATABASE, UNREADABLE, refuse_new_database_blocking
from gateway.settings import Secret, Settings
from memory.stores.database import SqlDatabase
from memory.stores.sqlite.database import migrations_of, open_database
from memory.vectors.pgvector import hindrance

SCHEMA: Final = "candor"
MEMORY_SCHEMA: Final = "candor_memory"
"""Both in PostgreSQL."""
_NO_DRIVER: Final = (
    "CANDOR_DATABASE_URL takes the package psycopg: pip install 'candor[postgres]', or unset it."
)
_IN_USE: Final = (
    "Another Candor server uses the database of CANDOR_DATABASE_URL; stop it, give this one its "
    "own, or set CANDOR_NODE_URL for both."
)
_ALONE: Final = (
    "CANDOR_NODE_URL takes CANDOR_DATABASE_URL: servers that answer as one share a PostgreSQL "
    "database."
)


async def open_storage(settings: Settings, *, serves: bool = False) -> SqlDatabase:
    """Open the database, made if missing, and bring it up to date.

    With `serves`, no other server has it open, unless all have a `node_url`; and a new one in
    PostgreSQL is refused if there are earlier conversations. Raise `StoreUnavailable` if it cannot
    be opened, and `StartError` if it is refused or in use, or psycopg is missing.
    """
    if settings.database_url is None:
        if settings.node_url is not None:
            raise SettingsError(_ALONE)
        return await open_database(settings.data_dir / DATABASE, await sqlite_steps())
    if find_spec("psycopg") is None:
        raise SettingsError(_NO_DRIVER)
    return await _open_postgres(settings, settings.database_url, serves=serves)


async def _open_postgres(settings: Settings, url: Secret, *, serves: bool) -> SqlDatabase:
    from memory.stores.postgres.database import (  # noqa: PLC0415  psycopg is an extra
        InUse,
        is_made_blocking,
        open_postgres,
    )

    if serves and not await anyio.to_thread.run_sync(is_made_blocking, url.value, SCHEMA):
        await anyio.to_thread.run_sync(refuse_new_database_blocking, settings)
    from memory.stores.postgres.use_lock import Use  # noqa: PLC0415  as above

    steps = await anyio.to_thread.run_sync(migrations_of, postgres.__name__)
    use: Use | None = None
    if serves:
        use = "alone" if settings.node_url is None else "with_others"
    try:
        return await open_postgres(url.value, steps, schema=SCHEMA, use=use)
    except InUse as exc:
        raise StartError(_IN_USE) from exc


def notifications(settings: Settings) -> Notifications | None:
    """Return what carries notifications between the servers that share the database; None if this
    one has it alone.
    """
    if settings.database_url is None or settings.node_url is None:
        return None
    from memory.stores.postgres.notifications import (  # noqa: PLC0415  psycopg is an extra
        PostgresNotifications,
    )

    return PostgresNotifications(settings.database_url.value, SCHEMA)


def memory_storage(settings: Settings) -> Callable[[], Awaitable[SqlDatabase]] | None:
    """Return what opens memory's database in PostgreSQL; None if it is a file.

    The server opens its own database first, which no other server then uses.
    """
    url = settings.database_url
    return None if url is None else partial(_open_memory, url)


async def _open_memory(url: Secret) -> SqlDatabase:
    if find_spec("psycopg") is None:
        raise SettingsError(_NO_DRIVER)
    from memory.stores.postgres import (  # noqa: PLC0415  psycopg is an extra
        migrations as memory_migrations,
    )
    from memory.stores.postgres.database import open_postgres  # noqa: PLC0415

    steps = await anyio.to_thread.run_sync(migrations_of, memory_migrations.__name__)
    return await open_postgres(url.value, steps, schema=MEMORY_SCHEMA)


def postgres_url(settings: Settings) -> str:
    """Return the address in PostgreSQL. Raise `StartError` if it is not set, or psycopg is
    missing.
    """
    if settings.database_url is None:
        raise StartError("Set CANDOR_DATABASE_URL to the address of the PostgreSQL database.")
    if find_spec("psycopg") is None:
        raise SettingsError(_NO_DRIVER)
    return settings.database_url.value


async def sqlite_steps() -> Sequence[str]:
    """Return the migrations of the file."""
    return await anyio.to_thread.run_sync(migrations_of, migrations.__name__)


def where_to_look(settings: Settings) -> str:
    """Return what a person should look at when the database cannot be opened, as a sentence."""
    if settings.database_url is None:
        return "Look at the directory of CANDOR_DATA_DIR."
    return "Look at CANDOR_DATABASE_URL and the directory of CANDOR_DATA_DIR."


async def try_postgres(url: Secret) -> tuple[str, int, str | None]:
    """Look at a PostgreSQL database and change nothing: return its version, how many of the stored
    events and results are damaged, and why it cannot have memory's vectors, if it cannot.

    Raise `StoreUnavailable` if a start could not use it, `StartError` if psycopg is missing.
    """
    if find_spec("psycopg") is None:
        raise SettingsError(_NO_DRIVER)
    from memory.stores.postgres.database import (  # noqa: PLC0415  psycopg is an extra
        PostgresDatabase,
        is_made_blocking,
        try_postgres_blocking,
    )

    steps = await anyio.to_thread.run_sync(migrations_of, postgres.__name__)
    await anyio.to_thread.run_sync(try_postgres_blocking, url.value, steps, SCHEMA)
    is_made = await anyio.to_thread.run_sync(is_made_blocking, url.value, SCHEMA)
    database = PostgresDatabase(url.value, SCHEMA)
    try:
        version = str(await database.scalar("SELECT current_setting('server_version')"))
        damaged = int(await database.scalar(UNREADABLE)) if is_made else 0
        return version, damaged, await hindrance(database)
    finally:
        await database.close()
