"""Every vector index through the one suite, and the suite through wrong ones."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from memory.embeddings.protocol import Vector
from memory.testing.vectors import DIMENSION, VectorIndexSuite
from memory.vectors.chroma import ChromaVectorIndex
from memory.vectors.exact import ExactVectorIndex
from memory.vectors.protocol import VectorEntry, VectorHit, VectorIndex


class TestExact(VectorIndexSuite):
    @pytest.fixture
    def index(self) -> VectorIndex:
        return ExactVectorIndex(DIMENSION)


class TestChroma(VectorIndexSuite):
    @pytest.fixture
    async def index(self, tmp_path: Path) -> AsyncIterator[VectorIndex]:
        index = ChromaVectorIndex(tmp_path / "vectors", model_id="test-1", dimension=DIMENSION)
        yield index
        await index.close()


class Forgetful(ExactVectorIndex):
    async def remove(self, item_ids: Sequence[str]) -> None:
        self._entries = {key: one for key, one in self._entries.items() if key not in item_ids}


class Open(ExactVectorIndex):
    async def nearest(
        self, vector: Vector, owner_ids: Sequence[str], *, limit: int
    ) -> Sequence[VectorHit]:
        everybody = {one.owner_id for one in self._entries.values()} | set(owner_ids)
        return await super().nearest(vector, sorted(everybody), limit=limit)


class Backwards(ExactVectorIndex):
    async def nearest(
        self, vector: Vector, owner_ids: Sequence[str], *, limit: int
    ) -> Sequence[VectorHit]:
        hits = await super().nearest(vector, owner_ids, limit=1000)
        return list(reversed(hits))[:limit]


class HalfWritten(ExactVectorIndex):
    async def put(self, entries: Sequence[VectorEntry]) -> None:
        for one in entries:
            await super().put([one])


class Keeping(ExactVectorIndex):
    async def clear(self) -> None:
        """Keeps everything."""


WRONG = [
    (Forgetful, "test_all_entries_of_an_item_go_with_it"),
    (Open, "test_what_is_anothers_is_not_near"),
    (Backwards, "test_the_nearest_comes_first_with_its_cosine"),
    (HalfWritten, "test_another_dimension_is_refused_and_nothing_written"),
    (Keeping, "test_a_cleared_index_is_empty_and_can_be_used"),
]


@pytest.mark.parametrize(("wrong", "test"), WRONG, ids=lambda one: getattr(one, "__name__", one))
async def test_a_wrong_index_does_not_pass(wrong: type[ExactVectorIndex], test: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        await getattr(VectorIndexSuite(), test)(wrong(DIMENSION))
