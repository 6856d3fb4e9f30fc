"""The stores of conversations, turns and events against their suites."""

from pathlib import Path

import pytest

from tests.conformance.suites.conversation_values import OpenStores
from tests.conformance.suites.conversations import ConversationStoreSuite
from tests.conformance.suites.events import EventStoreSuite
from tests.conformance.suites.turns import TurnStoreSuite
from tests.support.stores import sqlite_stores


class _OnSqlite:
    @pytest.fixture
    def opens(self, tmp_path: Path) -> OpenStores:
        return sqlite_stores(tmp_path)


class TestSqliteConversations(_OnSqlite, ConversationStoreSuite):
    pass


class TestSqliteTurns(_OnSqlite, TurnStoreSuite):
    pass


class TestSqliteEvents(_OnSqlite, EventStoreSuite):
    pass
