"""Combines the retrievers' answers by reciprocal rank fusion.

    score(item) = Σ over retrievers  weight / (k + rank)    (Cormack, Clarke and Büttcher, SIGIR
    2009)

`k` is 10 and not the paper's 60: the lists are short, and their first places matter more (measured
on dialogues in Chinese and English, see `bench/recall.py`).

Ranks do not say how much better one item is than the next. `fit` does: the weighted sum of the
retrievers' own measures.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memory.recall.retrievers import Candidate, Ranked, RetrieverName

_K: Final = 10.0
_WEIGHTS: Final[Mapping[RetrieverName, float]] = {
    "fulltext": 1.0,
    "vector": 1.2,
    "memu": 0.2,
}
"""memU names five items without a measure, so its weight only orders neighbours.

Measured on MADial-Bench beside full text alone, with the five by BGE-M3: MRR@10 58.0 to 61.7 in
Chinese, 51.6 to 58.2 in English; with five drawn at random to 55.4 and 51.2 (with a weight of 0.8:
48.9 and 37.8).
"""
_FIT_WEIGHTS: Final[Mapping[RetrieverName, float]] = {"fulltext": 0.6, "vector": 0.4}
_BEYOND: Final = 0.8
"""An item that a retriever did not find is this share of the lowest nearness that it found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a retriever had an item."""

    retriever: RetrieverName
    rank: int
    """From 1."""
    strength: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """An item with its fused score and its places."""

    item_id: str
    score: float
    places: tuple[Place, ...]
    fit: float = 0.0
    """0 to 1; 0 if no retriever that found it has a measure."""
    nearness: float = 1.0
    """To the best that one of its retrievers found, 0 to 1."""
    is_weak: bool = False
    """True if no retriever holds it worth showing."""


def fuse(lists: Sequence[Ranked]) -> list[Fused]:
    """Return all items of the lists, best first, equal ones by id.

    An item that one retriever found for several queries counts once, with its best place.
    """
    fits = _fits(lists)
    nearness: dict[str, float] = defaultdict(float)
    worth_showing: set[str] = set()
    best: dict[str, dict[RetrieverName, Place]] = defaultdict(dict)
    for ranked in lists:
        nearest = max(map(_nearness, ranked.candidates), default=0.0) or 1.0
        for rank, candidate in enumerate(ranked.candidates, start=1):
            name, item_id = ranked.retriever, candidate.item_id
            nearness[item_id] = max(nearness[item_id], _nearness(candidate) / nearest)
            if not candidate.is_weak:
                worth_showing.add(item_id)
            place = Place(retriever=name, rank=rank, strength=candidate.strength)
            known = best[item_id].get(name, place)
            best[item_id][name] = min(known, place, key=lambda found: found.rank)
    fused = [
        Fused(
            item_id=item_id,
            score=sum(_WEIGHTS[name] / (_K + place.rank) for name, place in places.items()),
            places=tuple(sorted(places.values(), key=lambda place: place.rank)),
            fit=fits.get(item_id, 0.0),
            nearness=nearness[item_id],
            is_weak=item_id not in worth_showing,
        )
        for item_id, places in best.items()
    ]
    return sorted(fused, key=lambda item: (-item.score, item.item_id))


def _nearness(candidate: Candidate) -> float:
    return (candidate.strength or 0.0) if candidate.nearness is None else candidate.nearness


def _fits(lists: Sequence[Ranked]) -> dict[str, float]:
    nearest: dict[RetrieverName, dict[str, float]] = defaultdict(dict)
    for ranked in lists:
        for candidate in ranked.candidates:
            nearness = candidate.strength if candidate.nearness is None else candidate.nearness
            if nearness is not None:
                near = nearest[ranked.retriever]
                near[candidate.item_id] = max(near.get(candidate.item_id, 0.0), nearness)
    weights = {name: _FIT_WEIGHTS[name] for name in nearest}
    whole = sum(weights.values()) or 1.0
    found = {item_id for near in nearest.values() for item_id in near}
    fits = dict.fromkeys(found, 0.0)
    for name, near in nearest.items():
        beyond = _BEYOND * min(near.values(), default=0.0)
        for item_id in found:
            fits[item_id] += weights[name] * near.get(item_id, beyond) / whole
    return fits
