"""Decides what of a search goes into a prompt unasked: nothing, unless an answer is likely, and no long tail."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memory.periods import AskedTime
from memory.recall.confidence import LEAST_CONFIDENCE
from memory.recall.query import Found, HeldBack, Hit
from memory.recall.superseded import mark_superseded

_MAX_SHOWN: Final = 5
_LEAST_FIT: Final = 0.5
"""Of the best fit; an item that is about as likely as the likeliest need not have it."""
_NEARLY_BEST: Final = 0.9
_LIKELY: Final = 0.7
"""Of the highest confidence, where the newest is asked for."""
_LEAST_OF_BEST: Final = 0.1
"""Of the highest confidence: the fit of an item found for a part of a long message says little."""


def worth_showing(found: Found) -> Found:
    """Return the hits worth showing, best first; those that a newer one replaces are held back."""
    best = max((hit.confidence for hit in found.hits), default=0.0)
    if best < LEAST_CONFIDENCE:
        return replace(found, hits=())
    ordered = _in_time(found.hits, found.times)
    likely = [hit for hit in ordered if hit.confidence >= _LEAST_OF_BEST * best]
    fit = max(hit.fit for hit in likely)
    near = [
        hit
        for hit in likely
        if hit is likely[0]
        or hit.fit >= _LEAST_FIT * fit
        or hit.confidence >= max(LEAST_CONFIDENCE, _NEARLY_BEST * best)
        or hit.superseded_by
    ]
    shown = [hit for hit in near if hit.superseded_by is None]
    replaced = [hit for hit in near if hit.superseded_by is not None]
    held_back = [HeldBack(id=hit.item.id, reason="superseded") for hit in replaced]
    return replace(
        found,
        hits=shown[:_MAX_SHOWN],
        more=shown[_MAX_SHOWN:],
        held_back=[*found.held_back, *held_back],
    )


def _in_time(hits: Sequence[Hit], times: Sequence[AskedTime]) -> list[Hit]:
    """Order the hits as the question asks for, and mark those that a newer one replaces."""
    ordered = _newest_first(hits) if any(when.is_newest for when in times) else hits
    return mark_superseded(ordered, next((when.period for when in times if when.period), None))


def _newest_first(hits: Sequence[Hit]) -> list[Hit]:
    """Put those that are nearly as likely as the likeliest in the order of time, before the others."""
    best = max((hit.confidence for hit in hits), default=0.0)
    likely = [hit for hit in hits if hit.confidence >= _LIKELY * best]
    rest = [hit for hit in hits if hit.confidence < _LIKELY * best]
    return [*sorted(likely, key=lambda hit: hit.item.occurred_at, reverse=True), *rest]
