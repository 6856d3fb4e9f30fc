"""The memory's database on a temporary directory, with the store of episodes on it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from memory.episodes.store import SqlEpisodeStore
from memory.episodes.turn import Turn
from memory.intents.builders import (
    Happening,
    intent_from_tool_result,
    intent_from_turn_completed,
    intent_from_turn_received,
)
from memory.intents.chronicle import SqlChronicle
from memory.intents.record import IntentRecorder
from memory.intents.registry import MemoryIntent
from memory.stores.database import SqlDatabase
from memory.stores.postgres import migrations as postgres_migrations
from memory.stores.sqlite import migrations
from memory.stores.sqlite.database import Database, migrations_of, open_database
from memory.stores.sqlite.items import SqlItemStore
from policies.secrets import mask_secrets
from tests.conformance.suites.episodes import OpenEpisodes
from tests.support.postgres import open_schema

FILE = "memory.sqlite3"
MIGRATIONS = migrations_of(migrations.__name__)
POSTGRES_MIGRATIONS = migrations_of(postgres_migrations.__name__)
AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@asynccontextmanager
async def open_memory(directory: Path) -> AsyncIterator[Database]:
    """Open the memory's database of a directory while the block runs."""
    database = await open_database(directory / FILE, MIGRATIONS)
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def open_memory_in(place: Path | str) -> AsyncIterator[SqlDatabase]:
    """Open a memory in a directory, or in a schema of PostgreSQL, while the block runs."""
    if isinstance(place, Path):
        async with open_memory(place) as file:
            yield file
    else:
        async with open_schema(place, POSTGRES_MIGRATIONS) as database:
            yield database


async def dump(database: SqlDatabase) -> str:
    """Write out all rows of all tables, the full text's own included.

    Its index drops the words of deleted rows when it merges its parts: have it do so now.
    """
    tables = "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()"
    if database.engine == "sqlite":
        await database.execute("INSERT INTO item_words (item_words) VALUES ('optimize')")
        tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
    names = await database.rows(tables)
    rows = [
        row
        for name in [row["name"] for row in names]
        for row in await database.rows(f'SELECT * FROM "{name}"')
    ]
    return "\n".join(repr(tuple(row)) for row in rows)


def recorder_on(database: SqlDatabase) -> IntentRecorder:
    """Return a recorder of intents on an open database."""
    return IntentRecorder(SqlChronicle(database), mask_secrets)


def turn_intents(turn_id: str, *, command: str, message: str = "") -> list[MemoryIntent]:
    """Return the intents of a turn of Ann's that ran one command."""
    at = Happening(owner_id="ann", occurred_at=AT, conversation_id="cnv_1", turn_id=turn_id)
    return [
        intent_from_turn_received(at, message=message or f"please run {command}"),
        intent_from_tool_result(
            at,
            tool_name="Bash",
            status="ok",
            tool_use_id=f"{turn_id}_1",
            args={"command": command},
            result=f"{command} is done",
        ),
        intent_from_turn_completed(
            at, outcome="answered", stop_reason="end_turn", reply="", tool_calls=1, duration_ms=1
        ),
    ]


def make_turn(**fields: Any) -> Turn:
    """Make a turn of Ann's."""
    turn = Turn(turn_id="trn_1", conversation_id="cnv_1", owner_id="ann", occurred_at=AT)
    return replace(turn, **fields)


async def deliveries_in(database: SqlDatabase, item_id: str) -> Sequence[str]:
    """Return the keys of all deliveries of an item."""
    sql = "SELECT idempotency_key FROM outbox WHERE item_id = ? ORDER BY idempotency_key"
    return [row["idempotency_key"] for row in await database.rows(sql, (item_id,))]


def opened_on(database: SqlDatabase) -> OpenEpisodes:
    """Put the store of episodes onto an open database, with what looks at its neighbours."""

    async def end_turn(turn_id: str) -> None:
        await recorder_on(database).record_intents(turn_intents(turn_id, command="true"))

    async def unremembered() -> Sequence[str]:
        return await SqlChronicle(database).unremembered(100)

    return OpenEpisodes(
        store=SqlEpisodeStore(database, lambda: AT),
        item=SqlItemStore(database).get,
        deliveries=partial(deliveries_in, database),
        end_turn=end_turn,
        unremembered=unremembered,
    )
