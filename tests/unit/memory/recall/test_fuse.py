"""Reciprocal rank fusion."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.recall.fuse import Fused, Fusion, fuse
from memory.recall.retrievers import Candidate, Ranked, RetrieverName


def ranked(retriever: RetrieverName, *ids: str) -> Ranked:
    return Ranked(
        retriever=retriever,
        candidates=[Candidate(item_id=one, strength=1 / (n + 2)) for n, one in enumerate(ids)],
    )


def order(fused: list[Fused]) -> list[str]:
    return [place.item_id for place in fused]


def test_what_both_arms_found_comes_before_what_one_found() -> None:
    fused = fuse([ranked("fulltext", "a", "both"), ranked("vector", "b", "both")], Fusion())
    assert order(fused)[0] == "both"


def test_the_score_is_the_sum_of_weights_by_place() -> None:
    fusion = Fusion(k=60, weights={"fulltext": 1.0, "vector": 2.0})
    fused = fuse([ranked("fulltext", "a", "b"), ranked("vector", "b", "c")], fusion)
    assert {place.item_id: place.score for place in fused} == pytest.approx(
        {"a": 1 / 61, "b": 1 / 62 + 2 / 61, "c": 2 / 62}
    )


def test_an_item_counts_once_for_several_queries_with_its_best_place() -> None:
    once = fuse([ranked("fulltext", "a", "b")], Fusion())
    twice = fuse([ranked("fulltext", "a", "b"), ranked("fulltext", "b", "a")], Fusion())
    assert {place.item_id: place.places[0].rank for place in twice} == {"a": 1, "b": 1}
    assert twice[0].score == once[0].score


def near(retriever: RetrieverName, **nearness: float | None) -> Ranked:
    return Ranked(
        retriever=retriever,
        candidates=[
            Candidate(item_id=name, strength=0.25, nearness=one) for name, one in nearness.items()
        ],
    )


def fits(*lists: Ranked) -> dict[str, float]:
    fusion = Fusion(fit_weights={"fulltext": 0.6, "vector": 0.4})
    return {place.item_id: place.fit for place in fuse(lists, fusion)}


def test_the_fit_is_the_weighted_sum_of_what_the_arms_measured() -> None:
    found = fits(near("fulltext", a=1.0, b=0.5), near("vector", b=0.75, c=0.5))
    assert found == pytest.approx({"a": 0.76, "b": 0.6, "c": 0.44}), (
        "what a retriever lacks is not far off"
    )


def test_an_arm_that_found_nothing_lowers_no_fit() -> None:
    assert fits(near("fulltext", a=1.0), near("vector")) == pytest.approx({"a": 1.0})
    assert fits(near("vector", a=0.5)) == pytest.approx({"a": 0.5})


def test_of_several_queries_the_one_that_fits_best_counts() -> None:
    found = fits(near("fulltext", a=0.2, b=1.0), near("fulltext", a=0.9))
    assert found == pytest.approx({"a": 0.9, "b": 1.0})


def test_equal_ones_stand_in_the_order_of_their_ids() -> None:
    assert order(fuse([ranked("fulltext", "b"), ranked("fulltext", "a")], Fusion())) == ["a", "b"]


IDS = st.lists(st.sampled_from("abcdefghij"), unique=True)


@settings(max_examples=25, deadline=None)
@given(IDS, IDS)
def test_everything_found_is_there_once_and_best_first(
    words: list[str], vectors: list[str]
) -> None:
    fused = fuse([ranked("fulltext", *words), ranked("vector", *vectors)], Fusion())
    assert sorted(order(fused)) == sorted({*words, *vectors})
    assert [place.score for place in fused] == sorted(
        (place.score for place in fused), reverse=True
    )
