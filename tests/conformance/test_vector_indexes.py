"""Every vector index through the one suite, and the suite through wrong ones."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from memory.embeddings.protocol import Vector
from memory.stores.database import Connection
from memory.stores.postgres.database import PostgresDatabase
from memory.vectors import chroma, pgvector
from memory.vectors.chroma import ChromaVectorIndex
from memory.vectors.pgvector import PgvectorIndex
from memory.vectors.protocol import (
    DimensionMismatch,
    IndexUnavailable,
    VectorEntry,
    VectorHit,
    VectorIndex,
)
from tests.conformance.suites.vectors import DIMENSION, EAST, NORTH, VectorIndexSuite, entry
from tests.conformance.test_item_stores import POSTGRES_MIGRATIONS
from tests.support.exact_index import ExactVectorIndex
from tests.support.other_words import OtherWords
from tests.support.postgres import empty_schema_blocking, open_schema


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


@pytest.fixture
def schema() -> Iterator[str]:
    with empty_schema_blocking("vectors") as name:
        yield name


class TestPgvector(VectorIndexSuite):
    @pytest.fixture
    async def index(self, schema: str) -> AsyncIterator[VectorIndex]:
        async with open_schema(schema, POSTGRES_MIGRATIONS) as database:
            yield PgvectorIndex(database, dimension=DIMENSION)


class TestPgvectorAmongMany(TestPgvector):
    """Every owner is taken for one with many entries, so that the graph is followed."""

    @pytest.fixture(autouse=True)
    def _many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pgvector, "_MOST_COMPARED", -1)


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


class _Explained:
    """A database that writes down how its server finds what is near."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self.plans: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def read(self, work: Callable[[Any], Any]) -> Any:
        return await self._database.read(lambda reader: work(_Explaining(reader, self.plans)))


class _Explaining:
    def __init__(self, reader: Connection, plans: list[str]) -> None:
        self._reader = reader
        self._plans = plans

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        if "distance" in sql:
            rows = self._reader.execute(f"EXPLAIN {sql}", parameters).fetchall()
            self._plans.append("\n".join(row[0] for row in rows))
        return self._reader.execute(sql, parameters)


async def test_pgvector_follows_the_graph_for_owners_with_many_and_compares_few(
    schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgvector, "_MOST_COMPARED", 20)
    async with open_schema(schema, POSTGRES_MIGRATIONS) as database:
        explained: Any = _Explained(database)
        index = PgvectorIndex(explained, dimension=DIMENSION)
        for owner, count in (("ada", 20), ("bob", 400)):
            await index.put(
                [entry(f"{owner}{n}", [1.0, n / 10, 0.0], owner_id=owner) for n in range(count)]
            )
        hits = await index.nearest(EAST, ["ada"], limit=3)
        assert [hit.item_id for hit in hits] == ["ada0", "ada1", "ada2"]
        await index.put([entry(f"eve{n}", [0.0, 1.0, n / 10], owner_id="eve") for n in range(21)])
        for owner in ("bob", "eve"):  # the graph leads to all of Bob's before it does to Eve's
            hits = await index.nearest(EAST, [owner, "nobody"], limit=3)
            assert {hit.item_id[:3] for hit in hits} == {owner}
            assert len(hits) == 3
    few, *many = explained.plans
    assert "item_vectors_near" not in few
    assert ["item_vectors_near" in plan for plan in many] == [True, True]


async def test_pgvector_finds_an_owners_entries_however_many_of_others_are_nearer(
    schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgvector, "_MOST_COMPARED", 1)
    monkeypatch.setattr(pgvector, "_MOST_SCANNED", 1)
    async with open_schema(schema, POSTGRES_MIGRATIONS) as database:
        index = PgvectorIndex(database, dimension=DIMENSION)
        others = [entry(f"bob{n}", [1.0, n / 1e4, 0.0], owner_id="bob") for n in range(500)]
        await index.put([*others, entry("near", [0.6, 0.8, 0.0]), entry("far", NORTH)])
        hits = await index.nearest(EAST, ["ada"], limit=2)
        assert [hit.item_id for hit in hits] == ["near", "far"]


async def test_pgvector_takes_vectors_of_another_dimension_once_it_is_cleared(schema: str) -> None:
    async with open_schema(schema, POSTGRES_MIGRATIONS) as database:
        await PgvectorIndex(database, dimension=DIMENSION).put([entry("a", EAST)])
        other = PgvectorIndex(database, dimension=2500)
        with pytest.raises(DimensionMismatch):
            await other.count()
        await other.clear()
        await other.put([entry("b", [1.0] * 2500)])
        hits = await other.nearest([1.0] * 2500, ["ada"], limit=2)
        assert [hit.item_id for hit in hits] == ["b"]
        await PgvectorIndex(database, dimension=DIMENSION).clear()


async def test_a_server_without_pgvector_or_with_an_old_one_is_told(
    schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_schema(schema, POSTGRES_MIGRATIONS) as database:
        without: Any = OtherWords(database, "name = 'vector'", "name = 'absent'")  # type: ignore[arg-type]
        with pytest.raises(IndexUnavailable, match="install pgvector"):
            await PgvectorIndex(without, dimension=DIMENSION).clear()
        monkeypatch.setattr(pgvector, "_OLDEST", (1000, 0))
        with pytest.raises(IndexUnavailable, match="ALTER EXTENSION"):
            await PgvectorIndex(database, dimension=DIMENSION).clear()
