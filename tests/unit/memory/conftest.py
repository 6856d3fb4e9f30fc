"""The memory's database, for tests that need nothing else of a memory."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory.stores.database import SqlDatabase
from tests.support.episodes import open_memory_in
from tests.support.postgres import empty_schema_blocking

ON_BOTH = {"facts", "test_forgetting.py"}
"""Folders and files here whose tests run on PostgreSQL, too; other stores have suites of their own."""
_HERE = Path(__file__).parent


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the engines of a test's database."""
    if "engine" in metafunc.fixturenames:
        place = Path(metafunc.definition.path).relative_to(_HERE).parts[0]
        metafunc.parametrize("engine", ["sqlite", *["postgresql"] * (place in ON_BOTH)])


@pytest.fixture
async def database(engine: str, tmp_path: Path) -> AsyncIterator[SqlDatabase]:
    if engine == "sqlite":
        async with open_memory_in(tmp_path) as opened:
            yield opened
    else:
        with empty_schema_blocking("memory") as schema:
            async with open_memory_in(schema) as opened:
                yield opened
