"""Fusion and ranking of what the retrievers found, and what of it is shown."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.items.item import Item
from memory.recall.coverage import Expectation, is_weak
from memory.recall.fuse import Fused, Place, fuse
from memory.recall.query import Found, Hit, QueryPack
from memory.recall.question_words import QuestionWords
from memory.recall.ranking import rank
from memory.recall.reader import RecallReader
from memory.recall.retrievers import Candidate, Ranked, Retriever, RetrieverAnswer, RetrieverName
from memory.recall.search import MemorySearch
from memory.recall.shown import worth_showing
from tests.support.recall import ANN, AT, GivingRetriever, Shelf, make_hit, make_item

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
WORDS = Place(retriever="fulltext", rank=3, strength=0.75)
MEANING = Place(retriever="vector", rank=1, strength=0.5)


def found(
    name: str, score: float, days: float = 0, places: tuple[Place, ...] = (WORDS,)
) -> tuple[Fused, Item]:
    item = make_item(name, "", occurred_at=NOW - timedelta(days=days))
    return Fused(item_id=name, score=score, places=places), item


AGES = {0: "today", -0.4: "today", 1: "1 day old", 2: "2 days old", -3: "dated ahead, 2026-11-23"}


def test_of_equals_the_younger_comes_first_and_why_says_who_found_it_where_and_its_age() -> None:
    scored = rank([found("a", 1, days=400), found("b", 1, days=1)], NOW)
    assert [item.item.id for item in scored] == ["b", "a"]
    for days, said in AGES.items():
        why = rank([found("a", 1, days=days, places=(MEANING, WORDS))], NOW)[0].why
        assert why == (
            f"found by its meaning (place 1, fit 50%) and its words (place 3, fit 75%); {said}"
        )


def ranked(retriever: RetrieverName, *ids: str) -> Ranked:
    return Ranked(
        retriever=retriever,
        candidates=[Candidate(item_id=one, strength=1 / (n + 2)) for n, one in enumerate(ids)],
    )


def order(fused: list[Fused]) -> list[str]:
    return [place.item_id for place in fused]


def test_the_score_is_the_sum_of_weights_by_place() -> None:
    fused = fuse([ranked("fulltext", "a", "b"), ranked("vector", "b", "c")])
    assert {place.item_id: place.score for place in fused} == pytest.approx(
        {"a": 1 / 11, "b": 1 / 12 + 1.2 / 11, "c": 1.2 / 12}
    )


def near(retriever: RetrieverName, **nearness: float | None) -> Ranked:
    found = [Candidate(item_id=name, strength=0.25, nearness=n) for name, n in nearness.items()]
    return Ranked(retriever=retriever, candidates=found)


@pytest.mark.parametrize(
    ("lists", "fits"),
    [
        (
            [near("fulltext", a=1.0, b=0.5), near("vector", b=0.75, c=0.5)],
            {"a": 0.76, "b": 0.6, "c": 0.44},
        ),
        ([near("fulltext", a=1.0), near("vector")], {"a": 1.0}),
        ([near("vector", a=0.5)], {"a": 0.5}),
        (
            [near("fulltext", a=0.2, b=1.0), *(near("fulltext", a=n) for n in (0.9, 0.3))],
            {"a": 0.9, "b": 1.0},
        ),
    ],
    ids=["what one lacks is not far off", "one found nothing", "one alone", "the best of queries"],
)
def test_the_fit_is_the_weighted_sum_of_what_was_measured(
    lists: list[Ranked], fits: dict[str, float]
) -> None:
    assert {place.item_id: place.fit for place in fuse(lists)} == pytest.approx(fits)


IDS = st.lists(st.sampled_from("abcdefghij"), unique=True)


@given(IDS, IDS, IDS)
def test_everything_found_is_there_once_and_best_first_and_equals_by_their_ids(
    words: list[str], other_words: list[str], vectors: list[str]
) -> None:
    lists = [ranked("fulltext", *words), ranked("fulltext", *other_words)]
    fused = fuse([*lists, ranked("vector", *vectors)])
    assert sorted(order(fused)) == sorted({*words, *other_words, *vectors})
    assert fused == sorted(fused, key=lambda place: (-place.score, place.item_id))


NUMBERED = [f"not_{n:02}" for n in range(1, 41)]
TWENTY = NUMBERED[:20]
SHELF = Shelf.of(*(make_item(item_id, "tea 茶") for item_id in NUMBERED))


def naming(*ids: str) -> GivingRetriever:
    """A retriever that names ids, as memU does."""
    return GivingRetriever("memu", RetrieverAnswer(candidates=_unmeasured(ids)))


def _unmeasured(ids: Sequence[str]) -> list[Candidate]:
    return [Candidate(item_id=item_id, strength=None, is_weak=True) for item_id in ids]


def search_on(*retrievers: Retriever, shelf: Shelf = SHELF) -> MemorySearch:
    return MemorySearch(shelf, retrievers, now=lambda: AT)


async def seconded(*retrievers: Retriever, shelf: Shelf = SHELF) -> tuple[list[str], list[str]]:
    """Return the ids of the likely hits, and of the others."""
    answer = await search_on(*retrievers, shelf=shelf).search("tea", scope=ANN, limit=40)
    likely = [hit.item.id for hit in answer.hits if not hit.is_weak]
    return likely, [hit.item.id for hit in answer.hits if hit.item.id not in likely]


async def test_why_says_that_memu_found_it_and_claims_no_measure() -> None:
    search = search_on(GivingRetriever.of("not_01"), naming("not_07", "not_01"))
    answer = await search.search("tea", scope=ANN)
    assert answer.hits[0].why == "found by its words (place 1, fit 90%) and memU (place 2); today"
    assert answer.hits[1].why == "found by memU (place 1); today"
    assert answer.hits[0].fit == pytest.approx(0.9)
    assert (answer.hits[1].fit, answer.hits[1].is_weak) == (0, True)


@pytest.mark.parametrize(
    "words", [GivingRetriever.of(), GivingRetriever.of(weak=["not_01", "not_02"])]
)
async def test_where_nothing_fits_five_names_show_nothing(words: GivingRetriever) -> None:
    """An embedding always has a nearest: to show it would answer every question with something."""
    five = naming("not_01", "not_05", "not_06", "not_07", "not_08")
    hits, weak = await seconded(words, five)
    assert hits == []
    assert set(weak) == {"not_01", "not_05", "not_06", "not_07", "not_08"} | {
        candidate.item_id for candidate in words.answer.candidates
    }
    pack = await RecallReader(search_on(words, five)).recall(QueryPack(queries=["x"], scope=ANN))
    assert (pack.text, list(pack.items)) == ("", [])


@given(
    st.lists(st.sampled_from(NUMBERED), unique=True),
    st.lists(st.sampled_from(NUMBERED), unique=True),
    st.lists(st.sampled_from(NUMBERED), unique=True, max_size=5),
)
async def test_whatever_is_named_just_the_same_items_are_shown(
    words: list[str], vectors: list[str], named: list[str]
) -> None:
    retrievers = [GivingRetriever.of(*words), GivingRetriever.of(*vectors, name="vector")]
    without, _ = await seconded(*retrievers)
    with_names, weak = await seconded(*retrievers, naming(*named))
    assert sorted(with_names) == sorted(without)
    assert set(named) <= {*with_names, *weak}


@given(st.lists(st.sampled_from(TWENTY), unique=True, max_size=5))
def test_whatever_five_are_named_the_best_by_words_stay_near_the_top(named: list[str]) -> None:
    lists = [ranked("fulltext", *TWENTY), Ranked(retriever="memu", candidates=_unmeasured(named))]
    found = order(fuse(lists))
    assert found.index(TWENTY[0]) < 3
    assert found.index(TWENTY[1]) < 5


def ids(found: Found) -> list[str]:
    return [shown.item.id for shown in found.hits]


def fitting(name: str, fit: float, days: int = 0) -> Hit:
    item = make_item(name, "", occurred_at=AT - timedelta(days=days))
    return replace(make_hit(item), fit=fit, nearness=fit)


def test_the_best_five_are_shown_and_nothing_far_below_the_best_or_weak() -> None:
    hits = [fitting(f"not_{n}", 1 - n / 20) for n in range(9)]
    shown = worth_showing(Found(hits=hits))
    assert sorted(ids(shown)) == [f"not_{n}" for n in range(5)]
    assert len(shown.more) == 4
    assert ids(worth_showing(Found(hits=[hits[0], fitting("not_far", 0.4)]))) == ["not_0"]
    assert ids(worth_showing(Found(hits=[replace(one, is_weak=True) for one in hits]))) == []


async def test_by_words_alone_what_is_somewhat_farther_is_shown_as_well() -> None:
    words = RetrieverAnswer(
        candidates=[
            Candidate(item_id=name, strength=0.9, nearness=nearness)
            for name, nearness in (("not_01", 1.0), ("not_02", 0.5), ("not_03", 0.35))
        ]
    )
    by_words = GivingRetriever("fulltext", words)
    meaning = GivingRetriever.of("not_01", name="vector")
    for more, expected in (([], {"not_01", "not_02"}), ([meaning], {"not_01"})):
        found = await search_on(by_words, *more).search("tea", scope=ANN)
        assert set(ids(worth_showing(found))) == expected


def test_of_near_equals_the_newest_comes_first() -> None:
    hits = [fitting("not_old", 1.0, 90), fitting("not_new", 0.95, 3), fitting("not_far", 0.8)]
    assert ids(worth_showing(Found(hits=hits))) == ["not_new", "not_old", "not_far"]


def coverage(expected: Expectation, *words: str) -> float:
    """Return the coverage of a row that has some words."""
    having = {word: {1} if word in words else set() for word in expected.worth}
    return expected.coverages(having, [1])[1]


def test_coverage_is_the_share_of_what_the_words_are_worth() -> None:
    counts = {"lag": 3, "service": 900, "zeppelin": 0}
    asked = QuestionWords.of("kafka lag service zeppelin").of_the_matter
    expected = Expectation.of(asked, lambda term: counts.get(term, 1), 1000)
    all_of_it, kafka, service = (
        coverage(expected, *words)
        for words in (("kafka", "lag", "service"), ("kafka",), ("service",))
    )
    assert 1 > all_of_it > kafka > service > 0
    assert is_weak(service)
    assert not is_weak(kafka)
    counts = {"报写": 0, "写了": 0}
    asked = QuestionWords.of("周报写了").of_the_matter
    spanning = Expectation.of(asked, lambda term: counts.get(term, 1), 1000)
    assert coverage(spanning, "周报") == 1
