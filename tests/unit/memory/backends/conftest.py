"""An embeddings endpoint on loopback, of a test's own."""

from collections.abc import Iterator

import pytest

from tests.unit.memory.backends.memu_services import FakeEmbeddings, served


@pytest.fixture
def endpoint() -> FakeEmbeddings:
    return FakeEmbeddings()


@pytest.fixture
def address(endpoint: FakeEmbeddings) -> Iterator[str]:
    with served(endpoint.answer) as address:
        yield f"{address}/v1"
