"""What a retriever names without a measure lifts what another is sure of, and shows nothing by itself."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.recall.confidence import LEAST_CONFIDENCE
from memory.recall.fuse import Fusion, fuse
from memory.recall.query import QueryPack
from memory.recall.reader import RecallReader
from memory.recall.retrievers import Candidate, Ranked, Retriever, RetrieverAnswer
from memory.recall.search import MemorySearch
from tests.support.recall import ANN, AT, GivingRetriever, Shelf, make_item

IDS = [f"not_{n:02}" for n in range(1, 41)]
TWENTY = IDS[:20]
SHELF = Shelf.of(*(make_item(item_id, "tea 茶") for item_id in IDS))


def naming(*ids: str) -> GivingRetriever:
    """A retriever that names ids, as memU does."""
    return GivingRetriever("memu", RetrieverAnswer(seconded=_unmeasured(ids)))


def _unmeasured(ids: Sequence[str]) -> list[Candidate]:
    return [Candidate(item_id=item_id, strength=None) for item_id in ids]


def search_on(*retrievers: Retriever, shelf: Shelf = SHELF) -> MemorySearch:
    return MemorySearch(shelf, retrievers, now=lambda: AT)


async def found(*retrievers: Retriever, shelf: Shelf = SHELF) -> tuple[list[str], list[str]]:
    """Return the ids of the likely hits, and of the others."""
    answer = await search_on(*retrievers, shelf=shelf).search("tea", scope=ANN, limit=40)
    likely = [hit.item.id for hit in answer.hits if hit.confidence >= LEAST_CONFIDENCE]
    return likely, [hit.item.id for hit in answer.hits if hit.item.id not in likely]


async def test_why_says_that_memu_found_it_and_claims_no_measure() -> None:
    search = search_on(GivingRetriever.of("not_01"), naming("not_07", "not_01"))
    answer = await search.search("tea", scope=ANN)
    assert answer.hits[0].why == "found by its words (place 1, fit 90%) and memU (place 1); today"
    assert answer.hits[1].why == "found by memU (place 2); today"
    assert answer.hits[0].fit == pytest.approx(0.9)
    assert (answer.hits[1].fit, answer.hits[1].confidence) == (0, 0)


@pytest.mark.parametrize(
    "words", [GivingRetriever.of(), GivingRetriever.of(weak=["not_01", "not_02"])]
)
async def test_where_nothing_fits_five_names_show_nothing(words: GivingRetriever) -> None:
    """An embedding always has a nearest: to show it would answer every question with something."""
    five = naming("not_01", "not_05", "not_06", "not_07", "not_08")
    hits, weak = await found(words, five)
    assert hits == []
    assert set(weak) == {"not_01", "not_05", "not_06", "not_07", "not_08"} | {
        candidate.item_id for candidate in words.answer.candidates
    }
    pack = await RecallReader(search_on(words, five)).recall(QueryPack(queries=["x"], scope=ANN))
    assert (pack.text, list(pack.items)) == ("", [])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(IDS), unique=True),
    st.lists(st.sampled_from(IDS), unique=True),
    st.lists(st.sampled_from(IDS), unique=True, max_size=5),
)
async def test_whatever_is_named_just_the_same_items_are_shown(
    words: list[str], vectors: list[str], named: list[str]
) -> None:
    retrievers = [GivingRetriever.of(*words), GivingRetriever.of(*vectors, name="vector")]
    without, _ = await found(*retrievers)
    with_names, weak = await found(*retrievers, naming(*named))
    assert sorted(with_names) == sorted(without)
    assert set(named) <= {*with_names, *weak}


def fused(named: Sequence[str]) -> list[str]:
    words = [Candidate(item_id=item, strength=0.9) for item in TWENTY]
    lists = [
        Ranked(retriever="fulltext", candidates=words),
        Ranked(retriever="memu", candidates=_unmeasured(named)),
    ]
    return [place.item_id for place in fuse(lists, Fusion())]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(TWENTY[10:]), unique=True, max_size=5))
def test_useless_names_from_far_down_push_nothing_out_of_the_first_five(named: list[str]) -> None:
    assert fused(named)[:5] == TWENTY[:5]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(TWENTY), unique=True, max_size=5))
def test_whatever_five_are_named_the_best_by_words_stay_near_the_top(named: list[str]) -> None:
    order = fused(named)
    assert order.index(TWENTY[0]) < 3
    assert order.index(TWENTY[1]) < 5
