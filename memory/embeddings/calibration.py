"""What a model's cosines mean: which are near, and how much one speaks for an answer.

Models differ: unrelated texts have a cosine near 0 for one and near 0.75 for another, and some tell an answer from
a text about the same subject where others do not. So the model is asked for vectors of `TEXTS`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from operator import mul
from pathlib import Path
from statistics import fmean, pstdev, pvariance
from typing import Final

from memory.embeddings.protocol import Vector

_HERE: Final = Path(__file__)
_UNRELATED: Final = _HERE.with_name("unrelated.txt").read_text(encoding="utf-8").splitlines()
"""Texts about different subjects."""
_ROWS: Final = _HERE.with_name("related.txt").read_text(encoding="utf-8").splitlines()
RELATED: Final = [tuple(row.split("|")) for row in _ROWS]
"""Statements, each with a question that it answers and one that it does not, in English and Chinese."""
TEXTS: Final = (*chain.from_iterable(zip(*RELATED, strict=True)), *_UNRELATED)

_DEVIATIONS: Final = 3.0
_MOST: Final = 0.95
_OTHERS: Final = slice(5, 40)
"""The neighbours that an item is compared with: the first may be answers as well."""
_LIKE_AN_ANSWER: Final = 2
"""Questions about something that is known, but not this, for each about something that is not known."""
_MOST_EVIDENCE: Final = 3.0
_LEAST_SPREAD: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How a model's cosines are read."""

    least: float
    """The least cosine that counts as near: clearly above those among texts about different subjects."""
    references: Sequence[Vector] = ()
    """Vectors of texts that are no answers, compared beside the items: a memory may hold few."""
    slope: float = 0.0
    """0 if the model does not tell answers from other texts."""
    middle: float = 0.0
    """The score that speaks neither for nor against an answer."""

    def evidence(self, question: Vector, cosines: Mapping[str, float]) -> dict[str, float]:
        """Return how the cosine of each of the nearest items changes the log-odds of being an answer.

        Empty if the model was not asked.
        """
        if not self.references:
            return {}
        background = [_cosine(question, one) for one in self.references]
        scores = _scores(list(cosines.values()), background)
        changes = (self.slope * (score - self.middle) for score in scores)
        bounded = (max(-_MOST_EVIDENCE, min(_MOST_EVIDENCE, change)) for change in changes)
        return dict(zip(cosines, bounded, strict=True))


def calibrated(vectors: Sequence[Vector]) -> Calibration:
    """Return how to read the cosines of the model that made these vectors of `TEXTS`.

    The scores of answers, and of the best texts that are no answers, count as two normal distributions of the
    same spread, as likely as each other.
    """
    count = len(RELATED)
    answered, unanswered = vectors[count : 2 * count], vectors[2 * count : 3 * count]
    references = [*vectors[:count], *vectors[3 * count :]]
    right: list[float] = []
    wrong: list[float] = []
    for place, (question, other) in enumerate(zip(answered, unanswered, strict=True)):
        if not (any(references[place]) and any(question) and any(other)):
            continue  # in a language that the model cannot read
        cosines = [_cosine(question, one) for one in references]
        right.append(_scores(cosines)[place])
        wrong.append(max(_scores([*cosines[:place], *cosines[place + 1 :]])))
        wrong += [max(_scores([_cosine(other, one) for one in references]))] * _LIKE_AN_ANSWER
    least = _least(vectors[3 * count :])
    if not right:
        return Calibration(least=least, references=references)
    spread = max(_LEAST_SPREAD, (pvariance(right) + pvariance(wrong)) / 2)
    return Calibration(
        least=least,
        references=references,
        slope=max(0.0, fmean(right) - fmean(wrong)) / spread,
        middle=(fmean(right) + fmean(wrong)) / 2,
    )


def _least(unrelated: Sequence[Vector]) -> float:
    read = [vector for vector in unrelated if any(vector)]
    cosines = [_cosine(one, other) for one, other in combinations(read, 2)]
    if not cosines:
        return _MOST
    return min(_MOST, max(0.0, fmean(cosines) + _DEVIATIONS * pstdev(cosines)))


def _scores(cosines: Sequence[float], background: Sequence[float] = ()) -> list[float]:
    """Return the cosines as standard scores among the neighbours and the background."""
    others = sorted([*cosines, *background], reverse=True)[_OTHERS]
    mean, spread = fmean(others), max(_LEAST_SPREAD, pstdev(others))
    return [(cosine - mean) / spread for cosine in cosines]


def _cosine(one: Vector, other: Vector) -> float:
    return sum(map(mul, one, other), 0.0)
