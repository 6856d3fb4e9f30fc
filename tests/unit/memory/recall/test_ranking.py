"""Fusion and ranking of what the retrievers found, and what of it is shown."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.items import Item
from memory.periods import asked_time
from memory.recall.confidence import LEAST_CONFIDENCE, Expectation, weighed
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
    return [Candidate(item_id=item_id, strength=None, confidence=0.0) for item_id in ids]


def search_on(*retrievers: Retriever, shelf: Shelf = SHELF) -> MemorySearch:
    return MemorySearch(shelf, retrievers, now=lambda: AT)


async def seconded(*retrievers: Retriever, shelf: Shelf = SHELF) -> tuple[list[str], list[str]]:
    """Return the ids of the likely hits, and of the others."""
    answer = await search_on(*retrievers, shelf=shelf).search("tea", scope=ANN, limit=40)
    likely = [hit.item.id for hit in answer.hits if hit.confidence >= LEAST_CONFIDENCE]
    return likely, [hit.item.id for hit in answer.hits if hit.item.id not in likely]


async def test_why_says_that_memu_found_it_and_claims_no_measure() -> None:
    search = search_on(GivingRetriever.of("not_01"), naming("not_07", "not_01"))
    answer = await search.search("tea", scope=ANN)
    assert answer.hits[0].why == "found by its words (place 1, fit 90%) and memU (place 2); today"
    assert answer.hits[1].why == "found by memU (place 1); today"
    assert answer.hits[0].fit == pytest.approx(0.9)
    assert (answer.hits[1].fit, answer.hits[1].confidence) == (0, 0)


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


def hit(item: Item, confidence: float, fit: float = 1.0) -> Hit:
    return replace(make_hit(item), confidence=confidence, fit=fit)


def noted(name: str, title: str, body: str, days: int) -> Item:
    return replace(
        make_item(name, body), title=title, body=body, occurred_at=AT - timedelta(days=days)
    )


def ids(found: Found) -> list[str]:
    return [shown.item.id for shown in found.hits]


def test_nothing_is_shown_unless_one_is_likely_and_then_no_long_tail() -> None:
    hits = [
        hit(make_item(f"not_{n}", f"text {n}"), 0.4 if n else 0.9, fit=1 - n / 10) for n in range(9)
    ]
    shown = worth_showing(Found(hits=hits))
    assert (ids(shown), len(shown.more)) == ([f"not_{n}" for n in range(5)], 1)
    likely = [hits[0], replace(hits[7], confidence=0.6), replace(hits[8], confidence=0.85)]
    assert ids(worth_showing(Found(hits=likely))) == ["not_0", "not_8"]
    first_by_rank = [replace(hits[0], fit=0.1), *hits[1:3]]
    assert ids(worth_showing(Found(hits=first_by_rank))) == ["not_0", "not_1", "not_2"]
    assert ids(worth_showing(Found(hits=[replace(one, confidence=0.01) for one in hits]))) == []


OLD = noted("not_old", "Data retention", "Positions are kept for 18 months.", 90)
NEW = noted("not_new", "Data retention, after the audit", "Positions are kept 12 months now.", 3)
CHANGED = noted("not_chg", "Stand-up", "It is at 9:15 instead of 9:40, the stand-up.", 2)
MEETINGS = noted("not_mee", "Regular meetings", "Stand-up at 9:40, ten minutes.", 60)
OTHER = noted("not_oth", "Shop 26", "Positions are kept by shop 26 for months.", 1)
SHOP = noted("not_shp", "Shop 13", "Positions are kept by shop 13 for months.", 5)


def test_a_newer_note_about_the_same_thing_replaces_the_older_one_and_says_so() -> None:
    for older, newer in ((OLD, NEW), (MEETINGS, CHANGED)):
        hits = [hit(make_item("not_1", ""), 0.9), hit(older, 0.6), hit(newer, 0.3, fit=0.1)]
        shown = worth_showing(Found(hits=hits))
        assert ids(shown) == ["not_1", newer.id]
        assert older.title in shown.hits[1].why
        assert [(held.id, held.reason) for held in shown.held_back] == [(older.id, "superseded")]
        shown = worth_showing(Found(hits=[hit(newer, 0.9), hit(older, 0.9, fit=0.4)]))
        assert [held.id for held in shown.held_back] == [older.id], "it fits less"
        assert older.id in ids(worth_showing(Found(hits=[hit(older, 0.9), hit(newer, 0.5)]))), (
            "what it says besides may be what is asked for"
        )


@pytest.mark.parametrize(
    ("items", "asked", "shown"),
    [
        ([SHOP, OTHER], "the shop", ["not_shp", "not_oth"]),
        ([SHOP, OTHER], "the latest shop", ["not_oth", "not_shp"]),
        ([replace(each, kind="turn") for each in (OLD, NEW)], "it", ["not_old", "not_new"]),
        ([OLD, NEW], "what was it three months ago", ["not_old", "not_new"]),
    ],
    ids=["other numbers", "the newest first", "another kind", "what held in the asked period"],
)
def test_what_replaces_nothing_is_shown(items: list[Item], asked: str, shown: list[str]) -> None:
    found = Found(hits=[hit(item, 0.9) for item in items], times=[asked_time(asked, AT)])
    assert ids(worth_showing(found)) == shown


def expecting(question: str, **counts: int) -> Expectation:
    """Return what is expected where each word stands in one row, but for these."""
    wording = QuestionWords.of(question)
    return Expectation.of(wording.of_the_matter, lambda term: counts.get(term, 1), 1000, wording)


def test_confidence_grows_with_the_share_of_the_question_and_with_its_length() -> None:
    expected = expecting("kafka lag service zeppelin", lag=3, service=900, zeppelin=0)
    all_of_it, kafka, service = (
        expected.measures(having, "").confidence
        for having in ({"kafka", "lag", "service"}, {"kafka"}, {"service"})
    )
    assert all_of_it > kafka > service == 0
    assert expected.share({"kafka", "lag", "service"}) < 1
    lengths = [" ".join(f"word{n}" for n in range(count)) for count in (1, 3, 5, 8, 20)]
    likely = [expecting(words).measures({*words.split()}, "").confidence for words in lengths]
    assert likely[0] == likely[1] < likely[2] < likely[3] == likely[4]
    assert weighed(1.0, -9.0) < LEAST_CONFIDENCE, "words are outweighed"
    spanning = expecting("周报写了", 报写=0, 写了=0)
    assert spanning.share({"周报"}) == 1


@pytest.mark.parametrize(
    ("question", "having", "names", "focus"),
    [
        ("nodes of the cluster in Dublin", {"nodes", "cluster"}, 1, 1),
        ("nodes of the cluster in Dublin", {"nodes", "dublin"}, 0, 1),
        ("rent in Dublin, Paris and Rome", {"rent"}, 2, 0),
        ("Which brand is the drill?", {"drill"}, 0, 0),
        ("Ann's birthday", {"birthday"}, 0, 1),
        ("怎么升级 Kafka 集群", {"集群"}, 1, 0),
        ("电钻的牌子", {"电钻"}, 0, 0),
    ],
)
def test_a_name_and_a_thing_asked_for_that_an_item_lacks_make_it_less_likely(
    question: str, having: set[str], names: int, focus: int
) -> None:
    expected = expecting(question)
    measures = expected.measures(having, "")
    assert (measures.names, measures.focus) == (names, focus)
    assert (measures.missing > 0) == ("Which" in question or "牌子" in question)
    for better in ({"names": 0}, {"missing": 0.0}):
        assert measures._replace(names=1, missing=1.0)._replace(**better).confidence > (
            measures._replace(names=1, missing=1.0).confidence
        )


ANSWERED = """
What is Ann's phone number? | Ann: 020 7946 | Ann has a new phone.
How much is the rent? | The rent is 900 euros. | The rent is paid by Ann.
How much is the rent? | The rent is 900 euros. | The rent is Ann's.¶She said so.¶Tickets: 900 euros.
When is the demo? | The demo is on Friday. | The demo is Ann's.
How many boxes are left? | Twelve boxes are left. | Boxes are in the shed.
What is the rent? How much is it? | The rent of it is high.¶900 euros. | The rent of it is high.
老王的手机号是多少？ | 老王 13800138000 | 老王换手机了
房租多少钱？ | 房租三千块 | 房租由小李付
演示是几号？ | 演示改到二十七号 | 演示由小李做
还有几个箱子？ | 箱子还有十二个 | 箱子放在车库
"""


def test_an_item_lacks_what_is_asked_for_unless_it_stands_where_most_of_the_words_do() -> None:
    wrong = []
    for line in ANSWERED.strip().splitlines():
        question, answer, other = line.replace("¶", "\n").split(" | ")
        expected = expecting(question)
        having = {*expected.asked}
        lacks = [expected.measures(having, text).lacks for text in (answer, other)]
        wrong += [(question, lacks)] if lacks != [0, 1] else []
    assert not wrong
