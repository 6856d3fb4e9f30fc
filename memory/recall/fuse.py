"""Puts the retrievers' answers together: reciprocal rank fusion, explained.

    score(item) = Σ over retrievers  weight / (k + rank)        (Cormack, Clarke and Büttcher, SIGIR 2009)

`k` is 10 and not the paper's 60: the lists are short here, and their first places tell more (measured
on dialogues in Chinese and English, see `bench/recall.py`).

Places say nothing of how much better one is than the next. Who weighs that against something else takes
the fit: the retrievers' own measures, put together by weight. A retriever without a measure says nothing of the fit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from memory.recall.retrievers import Candidate, RetrieverName

DEFAULT_K: Final = 10.0
DEFAULT_WEIGHTS: Final[Mapping[RetrieverName, float]] = {
    "fulltext": 1.0,
    "vector": 1.2,
    "memu": 0.2,
}
"""memU names five items without a measure, by a model that is not known here: so much as tells neighbours
apart. It lifts a retriever's fourth not above its first, and its eleventh not above its fifth. Measured on
MADial-Bench beside full text alone, the five by BGE-M3: MRR@10 58.0 to 61.7 in Chinese, 51.6 to 58.2 in
English; five drawn at random: to 55.4 and 51.2 (and with a weight of 0.8 to 48.9 and 37.8)."""
DEFAULT_FIT_WEIGHTS: Final[Mapping[RetrieverName, float]] = {"fulltext": 0.6, "vector": 0.4}
_BEYOND: Final = 0.8
"""What a retriever did not find is taken to be a little less near than the least that it found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fusion:
    """How much each retriever counts."""

    k: float = DEFAULT_K
    weights: Mapping[RetrieverName, float] = field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    fit_weights: Mapping[RetrieverName, float] = field(
        default_factory=lambda: dict(DEFAULT_FIT_WEIGHTS)
    )

    @property
    def unweighted(self) -> "Fusion":
        """The same, with every retriever as good as any other: for what none of them is sure of."""
        return replace(self, weights={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a retriever had an item."""

    retriever: RetrieverName
    rank: int
    """From 1."""
    strength: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """An item with its fused score and the places that made it."""

    item_id: str
    score: float
    places: tuple[Place, ...]
    fit: float = 0.0
    """0 to 1; of a retriever that found nothing nothing is expected. 0 where no retriever that found it has a measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One retriever's answer to one of the queries."""

    retriever: RetrieverName
    candidates: Sequence[Candidate]


def fuse(lists: Sequence[Ranked], fusion: Fusion) -> list[Fused]:
    """Give all items of the lists, best first; equal ones in the order of their ids.

    An item that one retriever found for several queries counts once, with its best place.
    """
    fits = _fits(lists, fusion)
    best: dict[str, dict[RetrieverName, Place]] = {}
    for ranked in lists:
        for rank, candidate in enumerate(ranked.candidates, start=1):
            places = best.setdefault(candidate.item_id, {})
            known = places.get(ranked.retriever)
            if known is None or rank < known.rank:
                places[ranked.retriever] = Place(
                    retriever=ranked.retriever, rank=rank, strength=candidate.strength
                )
    fused = [
        Fused(
            item_id=item_id,
            score=sum(
                fusion.weights.get(retriever, 1.0) / (fusion.k + one.rank)
                for retriever, one in places.items()
            ),
            places=tuple(sorted(places.values(), key=lambda place: place.rank)),
            fit=fits.get(item_id, 0.0),
        )
        for item_id, places in best.items()
    ]
    return sorted(fused, key=lambda value: (-value.score, value.item_id))


def _fits(lists: Sequence[Ranked], fusion: Fusion) -> dict[str, float]:
    nearest: dict[RetrieverName, dict[str, float]] = {}
    for ranked in lists:
        for candidate in ranked.candidates:
            nearness = candidate.strength if candidate.nearness is None else candidate.nearness
            if nearness is None:
                continue
            near = nearest.setdefault(ranked.retriever, {})
            near[candidate.item_id] = max(near.get(candidate.item_id, 0.0), nearness)
    weights = {retriever: fusion.fit_weights.get(retriever, 1.0) for retriever in nearest}
    whole = sum(weights.values()) or 1.0
    fits: dict[str, float] = {}
    found = {item_id for near in nearest.values() for item_id in near}
    for retriever, near in nearest.items():
        beyond = _BEYOND * min(near.values(), default=0.0)
        for item_id in found:
            nearness = near.get(item_id, beyond)
            fits[item_id] = fits.get(item_id, 0.0) + weights[retriever] * nearness / whole
    return fits
