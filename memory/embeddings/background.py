"""How alike unrelated texts are to a model, so that a cosine says whether two texts have to do with each other.

Models differ: unrelated texts have a cosine near 0 for one and near 0.75 for another. So each model is asked for
the vectors of texts about different subjects, and what is clearly above the cosines among them counts as near.
"""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean, pstdev
from typing import Final

from memory.embeddings.protocol import Vector

_FILE: Final = Path(__file__).with_name("unrelated.txt")
UNRELATED: Final = tuple(_FILE.read_text(encoding="utf-8").splitlines())
"""Texts about different subjects, one a line."""
_DEVIATIONS: Final = 3.0
"""Of MiniLM this gives 0.25, which was measured to be right on dialogues before."""
_MOST: Final = 0.95


def least_similarity(vectors: Sequence[Vector]) -> float:
    """Return the least cosine that means something, from the vectors of `UNRELATED`."""
    read = [vector for vector in vectors if any(vector)]
    cosines = [
        sum(a * b for a, b in zip(one, other, strict=True)) for one, other in combinations(read, 2)
    ]
    if not cosines:
        return _MOST
    return min(_MOST, max(0.0, fmean(cosines) + _DEVIATIONS * pstdev(cosines)))
