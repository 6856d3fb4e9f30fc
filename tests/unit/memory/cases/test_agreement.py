"""How far root causes agree by their words, and when they contradict each other."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.cases.agreement import agreement, contradict, is_told
from memory.cases.wording import kind_of, telling_words

words = st.lists(
    st.sampled_from(
        [
            "leak",
            "small",
            "missing",
            "slow",
            "pool",
            "heap",
            "index",
            "node",
            "not",
            "redi",
            "whirr",
            "奇异",
            "before",
            "than",
            "failed",
            "client",
            "untrusted",
            "@orders-user-id",
            "@orders-created-at",
        ]
    ),
    max_size=8,
)


@given(words, words, words)
def test_agreement_is_a_share_and_the_order_plays_no_part(
    one: list[str], other: list[str], symptoms: list[str]
) -> None:
    share = agreement(one, other, {*symptoms})
    assert 0 <= share <= 1
    assert share == agreement(other, one, {*symptoms})
    assert contradict(one, other) == contradict(other, one)


@given(words)
def test_a_root_cause_agrees_with_itself_and_does_not_contradict_itself(one: list[str]) -> None:
    tells = any(kind_of(word) != "bearing" for word in one)
    assert agreement(one, one) == (1.0 if tells else 0.0)
    assert not contradict(one, one)
    assert is_told(one, {*one})


def test_what_goes_wrong_weighs_more_than_what_it_happens_to_and_what_comes_of_it_less() -> None:
    def shares(word: str) -> float:
        return agreement(["whirr", word], ["hum", word])

    assert shares("leak") > shares("heap") > shares("slow")


def test_what_stands_in_the_symptom_too_tells_less() -> None:
    one, other = ["pool", "exhausted", "leak"], ["pool", "exhausted", "small"]
    assert agreement(one, other, {"pool", "exhausted"}) < agreement(one, other)


def test_a_word_that_is_not_told_is_missed_but_a_no_is_not() -> None:
    assert is_told(["leak", "not"], {"leak", "pool"})
    assert not is_told(["leak", "whirr"], {"leak", "pool"})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a leak in the heap", "a heap that is too small"),
        ("the cache was invalidated", "the cache was not invalidated"),
        ("sockets leaked in the client", "threads leaked in the client"),
        ("the frobnicator of the pool whirrs", "the doodad of the pool whirrs"),
        ("缓存已失效", "缓存未失效"),
    ],
)
def test_they_contradict_where_each_names_what_the_other_does_not(one: str, other: str) -> None:
    assert contradict(telling_words(one), telling_words(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a leak in the heap", "a leak"),
        ("no index on orders", "a missing index on orders"),
        ("no index on orders, full table scan", "a missing index on orders"),
        ("the heap of the node leaked", "leak of the heap on a pod"),
        ("slow because of a leak", "blocked because of a leak"),
        ("the frobnicator was whirring because of wear", "wear of the doodad"),
    ],
)
def test_saying_more_or_in_another_way_is_no_contradiction(one: str, other: str) -> None:
    assert not contradict(telling_words(one), telling_words(other))


def test_who_is_asked_first_plays_no_part_in_a_contradiction() -> None:
    """Laying two texts side by side gives another answer the other way round here."""
    one, other = ["heap", "leak", "heap", "hum"], ["hum", "leak", "whirr", "hum"]
    assert contradict(one, other) == contradict(other, one)


def test_very_long_root_causes_are_compared_in_bounded_time() -> None:
    """Laid side by side in full, a thousand equal words would take seconds."""
    long: Sequence[str] = ["whirr", "redi"] * 100_000
    assert not contradict(long, [*long, "whirr"])
