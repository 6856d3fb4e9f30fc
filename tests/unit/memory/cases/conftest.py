"""A book of cases on a temporary directory, and a finder on another."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.cases import CaseWorld, case_world
from tests.support.found_cases import FoundCases, open_finder


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[CaseWorld]:
    async with case_world(tmp_path) as one:
        yield one


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[FoundCases]:
    async with open_finder(tmp_path) as one:
        yield one
