"""An index of notes on a real database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.memory.notes.indexed import Indexed, indexing


@pytest.fixture
async def notes(tmp_path: Path) -> AsyncIterator[Indexed]:
    async with indexing(tmp_path) as one:
        yield one
