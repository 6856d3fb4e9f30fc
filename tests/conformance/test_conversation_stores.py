"""The stores of conversations, turns and events against their suites."""

from pathlib import Path

import pytest

from gateway.conversations.testing.conversations import ConversationStoreSuite
from gateway.conversations.testing.events import EventStoreSuite
from gateway.conversations.testing.turns import TurnStoreSuite
from gateway.conversations.testing.values import OpenStores
from tests.support.stores import sqlite_stores


class _OnSqlite:
    @pytest.fixture
    def open_stores(self, tmp_path: Path) -> OpenStores:
        return sqlite_stores(tmp_path)


class TestSqliteConversations(_OnSqlite, ConversationStoreSuite):
    pass


class TestSqliteTurns(_OnSqlite, TurnStoreSuite):
    pass


class TestSqliteEvents(_OnSqlite, EventStoreSuite):
    pass
