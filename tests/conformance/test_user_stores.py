"""The stores of users, tokens and the audit log against their suite, and the suite against wrong statements."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.sql.turns import TurnStore
from gateway.users.sql.audit import AuditLog
from gateway.users.sql.quotas import QuotaStore
from gateway.users.sql.sessions import SessionStore
from gateway.users.sql.users import TokenStore, UserStore
from memory.errors import StoreConflict
from memory.stores.database import SqlDatabase
from tests.conformance.suites.users import AccountStores, AccountStoreSuite, OpenAccounts, refused
from tests.support.other_words import Speak, expect_all_caught
from tests.support.postgres import empty_schema_blocking, open_schema
from tests.support.stores import POSTGRES_MIGRATIONS, open_file


def accounts_on(database: SqlDatabase) -> AccountStores:
    return AccountStores(
        users=UserStore(database),
        tokens=TokenStore(database),
        sessions=SessionStore(database),
        quotas=QuotaStore(database),
        audit=AuditLog(database),
        turns=TurnStore(database),
        conversations=ConversationStore(database),
    )


def opening(directory: Path, speak: Speak = lambda database: database) -> OpenAccounts:
    @asynccontextmanager
    async def opens() -> AsyncIterator[AccountStores]:
        async with open_file(directory) as database:
            yield accounts_on(speak(database))

    return opens


class TestSqliteAccounts(AccountStoreSuite):
    @pytest.fixture
    def opens(self, tmp_path: Path) -> OpenAccounts:
        return opening(tmp_path)


class TestPostgresAccounts(AccountStoreSuite):
    @pytest.fixture
    def opens(self) -> Iterator[OpenAccounts]:
        @asynccontextmanager
        async def opens() -> AsyncIterator[AccountStores]:
            async with open_schema(schema, POSTGRES_MIGRATIONS) as database:
                yield accounts_on(database)

        with empty_schema_blocking("conversations") as schema:
            yield opens


async def test_the_suite_catches_wrong_statements(tmp_path: Path) -> None:
    await expect_all_caught("accounts", tmp_path, opening, AccountStoreSuite())


async def test_no_statement_changes_an_entry(tmp_path: Path) -> None:
    async with open_file(tmp_path) as database:
        await AuditLog(database).add(refused("10.0.0.1"))
        with pytest.raises(StoreConflict):
            await database.execute("UPDATE audit SET subject = ''")
