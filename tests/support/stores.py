"""The stores, on SQLite in a temporary directory and on PostgreSQL in a schema of their own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.conversations import migrations
from gateway.conversations.migrations import postgres as postgres_migrations
from gateway.conversations.sql.agent_transcripts import SqlTranscriptStore
from gateway.conversations.sql.approvals import SqlApprovalStore
from gateway.conversations.sql.client_objects import SqlClientObjectStore
from gateway.conversations.sql.client_turns import SqlClientTurnStore
from gateway.conversations.sql.conversations import SqlConversationStore
from gateway.conversations.sql.duties import SqlDutyStore
from gateway.conversations.sql.events import SqlEventStore
from gateway.conversations.sql.file_changes import SqlFileChangeStore
from gateway.conversations.sql.leases import SqlLeaseStore
from gateway.conversations.sql.record_queue import SqlRecordQueue
from gateway.conversations.sql.schedules import SqlScheduleStore
from gateway.conversations.sql.turns import SqlTurnStore
from gateway.conversations.sql.webhooks import SqlWebhookStore
from gateway.conversations.sql.work_trees import SqlWorkTreeStore
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
        conversations=SqlConversationStore(database),
        turns=SqlTurnStore(database),
        events=SqlEventStore(database),
        approvals=SqlApprovalStore(database),
        schedules=SqlScheduleStore(database),
        leases=SqlLeaseStore(database),
        duties=SqlDutyStore(database),
        webhooks=SqlWebhookStore(database),
        client_objects=SqlClientObjectStore(database),
        client_turns=SqlClientTurnStore(database),
        file_changes=SqlFileChangeStore(database),
        record=SqlRecordQueue(database),
        transcripts=SqlTranscriptStore(database),
        work_trees=SqlWorkTreeStore(database),
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
