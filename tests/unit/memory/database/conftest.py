"""No test leaves a database open, and each is opened as the program does."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import pytest

from memory.stores.sqlite.database import Database
from tests.support.postgres import new_schema_blocking
from tests.unit.memory.database.words_file import LEFT, TABLE, WAIT_S, opened


@pytest.fixture(autouse=True)
def _open_as_shipped(_as_shipped: None) -> None:
    pass


@pytest.fixture(autouse=True)
async def _close_what_a_test_left() -> AsyncIterator[None]:
    """Its threads would keep the whole run from ending."""
    yield
    with anyio.move_on_after(WAIT_S):
        while LEFT:
            await LEFT.pop().close()


@pytest.fixture
async def database(tmp_path: Path) -> Database:
    return await opened(tmp_path / "d", [TABLE])


@pytest.fixture
def schema() -> Iterator[str]:
    with new_schema_blocking() as name:
        yield name
