"""The order of found items, and why each was found."""

from datetime import UTC, datetime, timedelta

import pytest

from memory.items import Item
from memory.recall.fuse import Fused, Place
from memory.recall.ranking import rank
from memory.scope import Scope

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
WORDS = Place(retriever="fulltext", rank=3, strength=0.75)
MEANING = Place(retriever="vector", rank=1, strength=0.5)


def found(
    name: str, score: float, days: float = 0, places: tuple[Place, ...] = (WORDS,)
) -> tuple[Fused, Item]:
    at = NOW - timedelta(days=days)
    item = Item(
        id=name,
        kind="episode",
        scope=Scope(owner_id="ann"),
        title="",
        summary="",
        body="",
        source="",
        occurred_at=at,
        updated_at=at,
    )
    return Fused(item_id=name, score=score, places=places), item


def test_of_equals_the_younger_comes_first() -> None:
    scored = rank([found("a", 1, days=400), found("b", 1, days=1)], NOW)
    assert [item.item.id for item in scored] == ["b", "a"]


def test_the_best_score_is_one_and_nothing_found_is_nothing() -> None:
    scored = rank([found("a", 0.3), found("b", 0.2)], NOW)
    assert scored[0].score == 1
    assert 0 < scored[1].score < 1
    assert rank([], NOW) == []


def test_why_says_which_arm_had_it_where_and_how_old_it_is() -> None:
    why = rank([found("a", 1, days=12, places=(MEANING, WORDS))], NOW)[0].why
    assert why == (
        "found by its meaning (place 1, fit 50%) and its words (place 3, fit 75%); 12 days old"
    )


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (0, "today"),
        (-0.4, "today"),
        (1, "1 day old"),
        (2, "2 days old"),
        (-3, f"dated ahead, {NOW + timedelta(days=3):%Y-%m-%d}"),
    ],
)
def test_the_age_is_said_in_days(days: float, said: str) -> None:
    assert rank([found("a", 1, days=days)], NOW)[0].why.endswith(f"; {said}")
