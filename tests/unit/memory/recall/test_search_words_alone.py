"""A search tells what of its answer words alone had found: the index of meaning may lack it."""

from collections.abc import Sequence
from datetime import timedelta

from memory.recall.search import MemorySearch
from tests.support.recall import ANN, AT, GivingRetriever, Shelf, StuckRetriever, make_item

TEA, MILK, BREAD = (make_item(f"not_{name}", name) for name in ("tea", "milk", "bread"))


def telling(
    told: list[Sequence[str]], *retrievers: GivingRetriever | StuckRetriever
) -> MemorySearch:
    return MemorySearch(
        Shelf.of(TEA, MILK),
        retrievers,
        now=lambda: AT + timedelta(days=1),
        on_words_alone=told.append,
    )


async def test_what_meaning_did_not_find_is_told() -> None:
    told: list[Sequence[str]] = []
    search = telling(
        told,
        GivingRetriever.of("not_tea", "not_milk"),
        GivingRetriever.of("not_tea", name="vector"),
    )
    await search.search("tea and milk", scope=ANN)
    assert told == [["not_milk"]]


async def test_nothing_is_told_of_what_both_found_or_is_not_the_callers() -> None:
    told: list[Sequence[str]] = []
    search = telling(
        told, GivingRetriever.of("not_tea", BREAD.id), GivingRetriever.of("not_tea", name="vector")
    )
    await search.search("tea and bread", scope=ANN)
    assert told == []
