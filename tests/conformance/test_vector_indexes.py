"""Every vector index through the one suite, and the suite through wrong ones."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from memory.embeddings.protocol import Vector
from memory.vectors import chroma
from memory.vectors.chroma import ChromaVectorIndex
from memory.vectors.protocol import VectorEntry, VectorHit, VectorIndex
from tests.conformance.suites.vectors import DIMENSION, EAST, VectorIndexSuite, entry
from tests.support.exact_index import ExactVectorIndex


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


class Unforgetful(ExactVectorIndex):
    async def remove(self, item_ids: Sequence[str]) -> None:
        """Remove nothing."""


class Open(ExactVectorIndex):
    async def nearest(
        self, vector: Vector, owner_ids: Sequence[str], *, limit: int
    ) -> Sequence[VectorHit]:
        everybody = {entry.owner_id for entry in self._entries.values()} | set(owner_ids)
        return await super().nearest(vector, sorted(everybody), limit=limit)


class Backwards(ExactVectorIndex):
    async def nearest(
        self, vector: Vector, owner_ids: Sequence[str], *, limit: int
    ) -> Sequence[VectorHit]:
        hits = await super().nearest(vector, owner_ids, limit=1000)
        return list(reversed(hits))[:limit]


class HalfWritten(ExactVectorIndex):
    async def put(self, entries: Sequence[VectorEntry]) -> None:
        for new in entries:
            await super().put([new])


class Hopeful(ExactVectorIndex):
    async def missing(self, item_ids: Sequence[str]) -> set[str]:
        return set(item_ids) if not self._entries else set()


class Keeping(ExactVectorIndex):
    async def clear(self) -> None:
        """Keeps everything."""


WRONG = [
    (Unforgetful, "test_the_entry_of_an_item_goes_with_it"),
    (Open, "test_what_is_anothers_is_not_near"),
    (Backwards, "test_the_nearest_comes_first_with_its_cosine"),
    (HalfWritten, "test_another_dimension_is_refused_and_nothing_written"),
    (Hopeful, "test_it_tells_which_items_have_no_entry"),
    (Keeping, "test_a_cleared_index_is_empty_and_can_be_used"),
]


@pytest.mark.parametrize(("wrong", "test"), WRONG, ids=lambda name: getattr(name, "__name__", name))
async def test_a_wrong_index_does_not_pass(wrong: type[ExactVectorIndex], test: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        await getattr(VectorIndexSuite(), test)(wrong(DIMENSION))


async def test_what_the_graph_does_not_lead_to_is_found_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among many equal vectors of others one may be cut off; so it is here, for certain."""
    index = ChromaVectorIndex(tmp_path / "vectors", model_id="test-1", dimension=DIMENSION)
    await index.put([entry(f"bob{n}", EAST, owner_id="bob") for n in range(5)])
    await index.put([entry("far", [0.0, 2.0, 0.0]), entry("near", [0.8, 0.6, 0.0])])
    monkeypatch.setattr(chroma, "_hits", lambda *_: ([], 5))
    hits = await index.nearest(EAST, ["ada", "eve"], limit=3)
    assert [hit.item_id for hit in hits] == ["near", "far"]
    assert [hit.similarity for hit in hits] == pytest.approx([0.8, 0.0], abs=1e-4)
    assert list(await index.nearest(EAST, ["eve"], limit=3)) == []
    await index.close()


async def test_chroma_tells_nobody_that_it_is_used(tmp_path: Path) -> None:
    """By itself it sends what it calls anonymous telemetry over the network."""
    index = ChromaVectorIndex(tmp_path / "vectors", model_id="test-1", dimension=4)
    try:
        assert await index.count() == 0
        settings = index._client.get_settings()  # noqa: SLF001  no other way to see it
        assert settings.anonymized_telemetry is False
    finally:
        await index.close()
