"""The memory's database on a temporary directory, for tests that need nothing else of a memory."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory.stores.sqlite.database import Database
from tests.support.episodes import open_memory


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_memory(tmp_path) as opened:
        yield opened
