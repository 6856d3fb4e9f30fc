"""What raises or lowers a fused score, within narrow bounds, and the words that say why.

Relevance decides; the rest only tells equals apart. What happened lately counts a little more, by at
most a tenth either way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import exp
from typing import Final

from memory.items import Item
from memory.recall.fuse import Fused, Place

MAX_RECENCY_BOOST: Final = 0.1
_HALF_WAY_DAYS: Final = 90.0
_DAY_S: Final = 86_400.0
_RETRIEVERS: Final = {"fulltext": "its words", "vector": "its meaning", "memu": "memU"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """An item with its final score."""

    item: Item
    score: float
    why: str
    fit: float = 0.0
    """As it was found: nothing raises or lowers it."""


def rank(found: Sequence[tuple[Fused, Item]], now: datetime) -> list[Scored]:
    """Order items by fused score times boosts, best first; the best one's score is at most 1."""
    if not found:
        return []
    raw = [(fused.score * _recency(item, now), fused, item) for fused, item in found]
    top = max(score for score, _, _ in raw)
    scored = [
        Scored(item=item, score=score / top, why=_why(fused.places, item, now), fit=fused.fit)
        for score, fused, item in raw
    ]
    return sorted(scored, key=lambda value: (-value.score, value.item.id))


def _recency(item: Item, now: datetime) -> float:
    """Give 1 ± 0.1: above 1 for what is younger than some two months, below for what is older.

    Of a case the age says nothing by itself: it counts where cases are ranked, by when they were judged.
    """
    if item.kind == "case":
        return 1.0
    fresh = exp(-_age_days(item, now) / _HALF_WAY_DAYS)
    return 1 + MAX_RECENCY_BOOST * (2 * fresh - 1)


def _age_days(item: Item, now: datetime) -> float:
    return max(0.0, (now - item.occurred_at).total_seconds() / _DAY_S)


def _why(places: Sequence[Place], item: Item, now: datetime) -> str:
    found = " and ".join(f"{_RETRIEVERS[place.retriever]} ({_place(place)})" for place in places)
    return f"found by {found}; {_age(item, now)}"


def _age(item: Item, now: datetime) -> str:
    days = round((now - item.occurred_at).total_seconds() / _DAY_S)
    if days < 0:
        return f"dated ahead, {item.occurred_at:%Y-%m-%d}"
    return "today" if days == 0 else "1 day old" if days == 1 else f"{days} days old"


def _place(place: Place) -> str:
    if place.strength is None:
        return f"place {place.rank}"
    return f"place {place.rank}, fit {place.strength:.0%}"
