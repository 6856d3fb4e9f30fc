"""The stores, on SQLite in a temporary directory and on PostgreSQL in a schema of their own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.conversations import migrations
from gateway.conversations.migrations import postgres as postgres_migrations
from gateway.conversations.sqlite.agent_transcripts import SqliteTranscriptStore
from gateway.conversations.sqlite.approvals import SqliteApprovalStore
from gateway.conversations.sqlite.client_objects import SqliteClientObjectStore
from gateway.conversations.sqlite.client_turns import SqliteClientTurnStore
from gateway.conversations.sqlite.conversations import SqliteConversationStore
from gateway.conversations.sqlite.duties import SqliteDutyStore
from gateway.conversations.sqlite.events import SqliteEventStore
from gateway.conversations.sqlite.file_changes import SqliteFileChangeStore
from gateway.conversations.sqlite.leases import SqliteLeaseStore
from gateway.conversations.sqlite.record_queue import SqliteRecordQueue
from gateway.conversations.sqlite.schedules import SqliteScheduleStore
from gateway.conversations.sqlite.turns import SqliteTurnStore
from gateway.conversations.sqlite.webhooks import SqliteWebhookStore
from memory.stores.database import SqlDatabase
from memory.stores.sqlite.database import Database, migrations_of, open_database
from tests.conformance.suites.conversation_values import OpenStores, Stores
from tests.support.postgres import open_schema

FILE = "candor.sqlite3"
MIGRATIONS = migrations_of(migrations.__name__)
POSTGRES_MIGRATIONS = migrations_of(postgres_migrations.__name__)


@asynccontextmanager
async def open_file(directory: Path) -> AsyncIterator[Database]:
    """Open the database of a directory while the block runs."""
    database = await open_database(directory / FILE, MIGRATIONS)
    try:
        yield database
    finally:
        await database.close()


def stores_on(database: SqlDatabase) -> Stores:
    """Put the stores onto an open database."""
    return Stores(
        conversations=SqliteConversationStore(database),
        turns=SqliteTurnStore(database),
        events=SqliteEventStore(database),
        approvals=SqliteApprovalStore(database),
        schedules=SqliteScheduleStore(database),
        leases=SqliteLeaseStore(database),
        duties=SqliteDutyStore(database),
        webhooks=SqliteWebhookStore(database),
        client_objects=SqliteClientObjectStore(database),
        client_turns=SqliteClientTurnStore(database),
        file_changes=SqliteFileChangeStore(database),
        record=SqliteRecordQueue(database),
        transcripts=SqliteTranscriptStore(database),
    )


def sqlite_stores(directory: Path) -> OpenStores:
    """Return what opens the SQLite stores of a directory."""

    @asynccontextmanager
    async def opening() -> AsyncIterator[Stores]:
        async with open_file(directory) as database:
            yield stores_on(database)

    return opening


def postgres_stores(schema: str) -> OpenStores:
    """Return what opens the PostgreSQL stores of a schema."""

    @asynccontextmanager
    async def opening() -> AsyncIterator[Stores]:
        async with open_schema(schema, POSTGRES_MIGRATIONS) as database:
            yield stores_on(database)

    return opening
