"""Orders fused items, of equal ones the younger first, and says in words why an item was found."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from memory.items.item import Item
from memory.recall.fuse import Fused, Place
from memory.recall.query import Hit

_DAY_S: Final = 86_400.0
_FOUND_BY: Final = {"fulltext": "its words", "vector": "its meaning", "memu": "memU"}


def rank(found: Sequence[tuple[Fused, Item]], now: datetime) -> list[Hit]:
    """Return the items best first; the best score is 1."""
    top = max((fused.score for fused, _ in found), default=1.0)
    hits = [
        Hit(
            item=item,
            score=fused.score / top,
            why=_why(fused.places, item, now),
            fit=fused.fit,
            nearness=fused.nearness,
            is_weak=fused.is_weak,
        )
        for fused, item in found
    ]
    return sorted(
        hits, key=lambda hit: (-hit.score, -hit.item.occurred_at.timestamp(), hit.item.id)
    )


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
