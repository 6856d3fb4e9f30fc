"""What every vector index must do, as tests; a subclass gives the fixture `index` of dimension 3."""

import pytest

from memory.vectors.protocol import DimensionMismatch, VectorEntry, VectorIndex

DIMENSION = 3
EAST, NORTH, UP = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]


def entry(item_id: str, vector: list[float], *, owner_id: str = "ada") -> VectorEntry:
    return VectorEntry(item_id=item_id, owner_id=owner_id, vector=vector)


class VectorIndexSuite:
    """The contract of `VectorIndex`."""

    async def test_the_nearest_comes_first_with_its_cosine(self, index: VectorIndex) -> None:
        await index.put(
            [entry("north", NORTH), entry("east", EAST), entry("between", [0.8, 0.6, 0])]
        )
        hits = await index.nearest(EAST, ["ada"], limit=3)
        assert [hit.item_id for hit in hits] == ["east", "between", "north"]
        assert [hit.similarity for hit in hits] == pytest.approx([1.0, 0.8, 0.0], abs=1e-4)

    async def test_no_more_than_asked_for_are_given(self, index: VectorIndex) -> None:
        await index.put([entry(str(n), [1.0, n / 10, 0.0]) for n in range(8)])
        assert [item.item_id for item in await index.nearest(EAST, ["ada"], limit=2)] == ["0", "1"]

    async def test_an_empty_index_has_nothing_near(self, index: VectorIndex) -> None:
        assert list(await index.nearest(EAST, ["ada"], limit=5)) == []
        assert await index.count() == 0

    async def test_what_is_anothers_is_not_near(self, index: VectorIndex) -> None:
        others = [entry(f"bob{n}", EAST, owner_id="bob") for n in range(120)]
        await index.put([*others, entry("mine", NORTH), entry("shared", UP, owner_id="*all")])
        hits = await index.nearest(EAST, ["ada", "*all"], limit=3)
        assert {hit.item_id for hit in hits} == {"mine", "shared"}

    async def test_the_entry_of_an_item_is_replaced(self, index: VectorIndex) -> None:
        await index.put([entry("a", EAST)])
        await index.put([entry("a", NORTH)])
        assert await index.count() == 1
        (hit,) = await index.nearest(NORTH, ["ada"], limit=5)
        assert hit.similarity == pytest.approx(1.0, abs=1e-4)

    async def test_the_last_of_two_of_one_item_counts(self, index: VectorIndex) -> None:
        await index.put([entry("a", EAST), entry("a", NORTH)])
        (hit,) = await index.nearest(NORTH, ["ada"], limit=5)
        assert hit.similarity == pytest.approx(1.0, abs=1e-4)

    async def test_the_entry_of_an_item_goes_with_it(self, index: VectorIndex) -> None:
        await index.put([entry("a", EAST), entry("b", UP)])
        await index.remove(["a", "unknown"])
        assert [item.item_id for item in await index.nearest(EAST, ["ada"], limit=5)] == ["b"]

    async def test_it_tells_which_items_have_no_entry(self, index: VectorIndex) -> None:
        assert await index.missing([]) == set()
        assert await index.missing(["a", "b"]) == {"a", "b"}
        await index.put([entry("a", EAST), entry("b", NORTH), entry("c", UP)])
        assert await index.missing(["a", "b", "d", "e", "d"]) == {"d", "e"}
        await index.remove(["a"])
        assert await index.missing(["a", "b", "c"]) == {"a"}

    async def test_many_are_put_at_once(self, index: VectorIndex) -> None:
        await index.put([entry(str(n), [1.0, n / 1000, 0.0]) for n in range(130)])
        assert await index.count() == 130

    async def test_another_dimension_is_refused_and_nothing_written(
        self, index: VectorIndex
    ) -> None:
        with pytest.raises(DimensionMismatch):
            await index.put([entry("a", EAST), entry("b", [1.0, 0.0])])
        with pytest.raises(DimensionMismatch):
            await index.nearest([1.0], ["ada"], limit=1)
        assert await index.count() == 0

    async def test_a_cleared_index_is_empty_and_can_be_used(self, index: VectorIndex) -> None:
        await index.put([entry("a", EAST)])
        await index.clear()
        assert await index.count() == 0
        await index.put([entry("b", NORTH)])
        assert [item.item_id for item in await index.nearest(EAST, ["ada"], limit=5)] == ["b"]

    async def test_it_can_be_closed_twice(self, index: VectorIndex) -> None:
        await index.put([entry("a", EAST)])
        await index.close()
        await index.close()

    async def test_ids_may_be_of_any_script(self, index: VectorIndex) -> None:
        await index.put([entry("笔记/一", EAST, owner_id="王")])
        (hit,) = await index.nearest(EAST, ["王"], limit=1)
        assert hit.item_id == "笔记/一"
