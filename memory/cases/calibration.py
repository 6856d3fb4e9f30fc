"""What a model's cosines mean: one scale for all, on which .8 is "the same" and .6 "much alike".

The thresholds of relations were made for a model that knows meaning. Vectors made of words lie further
apart for the same matter: what is a .8 there is less here. The curve of these was measured on incidents
told in several ways, in English and Chinese, beside incidents that only look alike.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How to use one model."""

    curve: tuple[tuple[float, float], ...]
    """From cosine to similarity, straight between the points; both grow from 0 to 1."""
    by_words: bool
    """Whether the model is given the telling words alone, because it knows no others."""
    other_words: float
    """How alike root causes can be at most that share few words."""

    def similarity_of(self, cosine: float) -> float:
        """Give the similarity, 0 to 1; it never falls as the cosine grows."""
        bounded = min(1.0, max(0.0, cosine))
        for (low, at_low), (high, at_high) in pairwise(self.curve):
            if bounded <= high:
                return at_low + (at_high - at_low) * (bounded - low) / (high - low)
        return 1.0


_AS_IT_IS: Final = Calibration(curve=((0.0, 0.0), (1.0, 1.0)), by_words=False, other_words=0.79)
_BY_MODEL: Final = {
    "hashed-1": Calibration(
        curve=((0.0, 0.25), (0.1, 0.45), (0.2, 0.6), (0.35, 0.7), (0.5, 0.8), (1.0, 1.0)),
        by_words=True,
        other_words=0.59,
    )
}


def calibration_of(model_id: str) -> Calibration:
    """Give how to use a model; one that was not measured is taken at its word."""
    return _BY_MODEL.get(model_id, _AS_IT_IS)
