"""What of a search is worth showing."""

from dataclasses import replace
from datetime import timedelta

import pytest

from memory.items import Item
from memory.periods import asked_time
from memory.recall.confidence import Expectation
from memory.recall.query import Found, Hit
from memory.recall.question_words import QuestionWords
from memory.recall.shown import worth_showing
from tests.support.recall import AT, make_hit, make_item


def hit(item: Item, confidence: float, fit: float = 1.0) -> Hit:
    return replace(make_hit(item), confidence=confidence, fit=fit)


def noted(name: str, title: str, body: str, days: int) -> Item:
    return replace(
        make_item(name, body), title=title, body=body, occurred_at=AT - timedelta(days=days)
    )


def ids(found: Found) -> list[str]:
    return [shown.item.id for shown in found.hits]


def test_nothing_is_shown_unless_one_is_likely_and_then_no_long_tail() -> None:
    hits = [hit(make_item(f"not_{n}", f"text {n}"), 0.9, fit=1 - n / 10) for n in range(9)]
    shown = worth_showing(Found(hits=hits))
    assert (ids(shown), len(shown.more)) == ([f"not_{n}" for n in range(5)], 1)
    assert ids(worth_showing(Found(hits=[replace(one, confidence=0.01) for one in hits]))) == []


OLD = noted("not_old", "Data retention", "Positions are kept for 18 months.", 90)
NEW = noted("not_new", "Data retention, after the audit", "Positions are kept 12 months now.", 3)
CHANGED = noted("not_chg", "Stand-up", "It is at 9:15 instead of 9:40, the stand-up.", 2)
MEETINGS = noted("not_mee", "Regular meetings", "Stand-up at 9:40, ten minutes.", 60)
OTHER = noted("not_oth", "Shop 26", "Positions are kept by shop 26 for months.", 1)
SHOP = noted("not_shp", "Shop 13", "Positions are kept by shop 13 for months.", 5)


def test_a_newer_note_about_the_same_thing_replaces_the_older_one_and_says_so() -> None:
    for older, newer in ((OLD, NEW), (MEETINGS, CHANGED)):
        shown = worth_showing(Found(hits=[hit(older, 0.9), hit(newer, 0.3)]))
        assert ids(shown) == [newer.id]
        assert older.title in shown.hits[0].why
        assert [(held.id, held.reason) for held in shown.held_back] == [(older.id, "superseded")]


def test_things_with_other_numbers_and_other_kinds_replace_nothing() -> None:
    assert len(ids(worth_showing(Found(hits=[hit(SHOP, 0.9), hit(OTHER, 0.9)])))) == 2
    turns = [hit(replace(item, kind="turn"), 0.9) for item in (OLD, NEW)]
    assert len(ids(worth_showing(Found(hits=turns)))) == 2


def test_what_held_in_the_asked_period_is_shown() -> None:
    asked = asked_time("what was it three months ago", AT)
    assert asked.period is not None
    shown = worth_showing(Found(hits=[hit(OLD, 0.9), hit(NEW, 0.9)], times=[asked]))
    assert ids(shown) == ["not_old", "not_new"]


def test_the_newest_comes_first_where_it_is_asked_for() -> None:
    times = [asked_time("the latest shop", AT)]
    shown = worth_showing(Found(hits=[hit(SHOP, 0.9), hit(OTHER, 0.8)], times=times))
    assert ids(shown) == ["not_oth", "not_shp"]


def test_confidence_grows_with_the_share_of_the_question_and_with_its_length() -> None:
    counts = {"kafka": 1, "lag": 3, "service": 900}
    expected = Expectation.of([*counts, "zeppelin"], lambda term: counts.get(term, 0), 1000)
    all_of_it, kafka, service = (
        expected.measures(having, "", None).confidence
        for having in ({"kafka", "lag", "service"}, {"kafka"}, {"service"})
    )
    assert all_of_it > kafka > service
    assert expected.share({"kafka", "lag", "service"}) < 1
    shorter = Expectation.of(["kafka"], lambda term: counts.get(term, 0), 1000)
    longer = Expectation.of(["kafka", "lag"], lambda term: counts.get(term, 0), 1000)
    assert (
        shorter.measures({"kafka"}, "", None).confidence
        < longer.measures({"kafka", "lag"}, "", None).confidence
    )
    spanning = Expectation.of(["周报", "报写", "写了"], lambda term: int(term == "周报"), 1000)
    assert spanning.share({"周报"}) == 1


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("What is Ann's phone number?", "Ann: 020 7946", "Ann has a new phone."),
        ("How much is the rent?", "The rent is 900 euros.", "The rent is paid by Ann."),
        ("When is the demo?", "The demo is on Friday.", "The demo is Ann's."),
        ("How many boxes are left?", "Twelve boxes are left.", "Boxes are in the shed."),
        ("老王的手机号是多少？", "老王 13800138000", "老王换手机了"),
        ("房租多少钱？", "房租三千块", "房租由小李付"),
        ("演示是几号？", "演示改到二十七号", "演示由小李做"),
        ("还有几个箱子？", "箱子还有十二个", "箱子放在车库"),
    ],
)
def test_an_item_without_what_is_asked_for_is_less_likely(
    question: str, answer: str, other: str
) -> None:
    wording = QuestionWords.of(question)
    expected = Expectation.of(wording.of_the_matter, lambda _: 1, 1000)
    having = {*wording.of_the_matter}
    assert expected.measures(having, answer, wording.form).lacks == 0
    assert expected.measures(having, other, wording.form).lacks == 1


def test_what_is_asked_for_counts_where_most_of_the_words_stand() -> None:
    wording = QuestionWords.of("How much is the rent?")
    expected = Expectation.of(wording.of_the_matter, lambda _: 1, 1000)
    body = "The rent is paid by Ann.\nShe said so.\nTickets: 900 euros."
    assert expected.measures({"rent"}, body, wording.form).lacks == 1
