"""Adjusts fused scores by age within narrow bounds, and says in words why an item was found.

Relevance decides. Recent items gain, and old ones lose, at most a hundredth: less than a place.
"""

from collections.abc import Sequence
from datetime import datetime
from math import exp
from typing import Final

from memory.items import Item
from memory.recall.fuse import Fused, Place
from memory.recall.query import Hit

MAX_RECENCY_BOOST: Final = 0.01
_HALF_WAY_DAYS: Final = 90.0
_DAY_S: Final = 86_400.0
_FOUND_BY: Final = {"fulltext": "its words", "vector": "its meaning", "memu": "memU"}


def rank(found: Sequence[tuple[Fused, Item]], now: datetime) -> list[Hit]:
    """Return the items by fused score and age, best first; the best score is 1."""
    raw = [(fused.score * _recency(item, now), fused, item) for fused, item in found]
    top = max((score for score, _, _ in raw), default=1.0)
    hits = [
        Hit(
            item=item,
            score=score / top,
            why=_why(fused.places, item, now),
            fit=fused.fit,
            confidence=fused.confidence,
        )
        for score, fused, item in raw
    ]
    return sorted(hits, key=lambda hit: (-hit.score, hit.item.id))


def _recency(item: Item, now: datetime) -> float:
    """Return 1 ± 0.01; above 1 for items younger than about two months.

    Always 1 for a case, whose age counts from its last vote where cases are ranked.
    """
    if item.kind == "case":
        return 1.0
    days = max(0.0, (now - item.occurred_at).total_seconds() / _DAY_S)
    return 1 + MAX_RECENCY_BOOST * (2 * exp(-days / _HALF_WAY_DAYS) - 1)


def _why(places: Sequence[Place], item: Item, now: datetime) -> str:
    found = " and ".join(f"{_FOUND_BY[place.retriever]} ({_place(place)})" for place in places)
    return f"found by {found}; {_age(item, now)}"


def _age(item: Item, now: datetime) -> str:
    days = round((now - item.occurred_at).total_seconds() / _DAY_S)
    if days < 0:
        return f"dated ahead, {item.occurred_at:%Y-%m-%d}"
    return "today" if days == 0 else "1 day old" if days == 1 else f"{days} days old"


def _place(place: Place) -> str:
    fit = "" if place.strength is None else f", fit {place.strength:.0%}"
    return f"place {place.rank}{fit}"
