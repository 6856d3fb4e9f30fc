"""The stores, on SQLite in a temporary directory and on PostgreSQL in a schema of their own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.conversations import migrations
from gateway.conversations.migrations import postgres as postgres_migrations
from gateway.conversations.sql.agent_transcripts import SqlTranscriptStore
from gateway.conversations.sql.approvals import ApprovalStore
from gateway.conversations.sql.client_objects import ClientObjectStore
from gateway.conversations.sql.client_turns import ClientTurnStore
from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.sql.duties import DutyStore
from gateway.conversations.sql.events import EventStore
from gateway.conversations.sql.file_changes import FileChangeStore
from gateway.conversations.sql.leases import LeaseStore
from gateway.conversations.sql.record_queue import RecordQueue
from gateway.conversations.sql.schedules import ScheduleStore
from gateway.conversations.sql.turns import TurnStore
from gateway.conversations.sql.webhooks import WebhookStore
from gateway.conversations.sql.work_trees import WorkTreeStore
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
        conversations=ConversationStore(database),
        turns=TurnStore(database),
        events=EventStore(database),
        approvals=ApprovalStore(database),
        schedules=ScheduleStore(database),
        leases=LeaseStore(database),
        duties=DutyStore(database),
        webhooks=WebhookStore(database),
        client_objects=ClientObjectStore(database),
        client_turns=ClientTurnStore(database),
        file_changes=FileChangeStore(database),
        record=RecordQueue(database),
        transcripts=SqlTranscriptStore(database),
        work_trees=WorkTreeStore(database),
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
