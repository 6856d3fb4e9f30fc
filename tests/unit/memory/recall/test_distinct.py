"""A turn and the fact that it told are shown once."""

from dataclasses import replace

from memory.recall.distinct import distinct
from memory.recall.query import Hit
from tests.support.recall import make_hit, make_item

FACT = replace(make_item("fac_1", "my locker is number 12"), kind="fact", turn_id="trn_1")


def told(*words: str) -> Hit:
    turn = replace(make_item("trn_1", " ".join(words)), kind="turn", turn_id="trn_1")
    return make_hit(turn, 1.0)


def test_a_turn_that_says_little_beside_its_fact_is_left_out() -> None:
    hits = [told("remember that my locker is number 12"), make_hit(FACT, 0.5)]
    assert [hit.item.id for hit in distinct(hits)] == ["fac_1"]
    assert [hit.item.id for hit in distinct(hits[:1])] == ["trn_1"]


def test_a_turn_that_says_more_stays_beside_its_fact() -> None:
    hits = [told("remember that my locker is number 12", "and " * 80), make_hit(FACT, 0.5)]
    assert [hit.item.id for hit in distinct(hits)] == ["trn_1", "fac_1"]
