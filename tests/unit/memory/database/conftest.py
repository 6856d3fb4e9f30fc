"""No test leaves a database open, and each is opened as the program does."""

from collections.abc import AsyncIterator

import anyio
import pytest

from tests.unit.memory.database.words_file import LEFT, WAIT_S


@pytest.fixture(autouse=True)
def _open_as_shipped(_as_shipped: None) -> None:
    pass


@pytest.fixture(autouse=True)
async def _close_what_a_failed_test_left() -> AsyncIterator[None]:
    """Its threads would keep the whole run from ending."""
    yield
    with anyio.move_on_after(WAIT_S):
        while LEFT:
            await LEFT.pop().close()
