"""What a model's cosines mean: which are near, and how much one speaks for an answer.

Models differ: unrelated texts have a cosine near 0 for one and near 0.75 for another, and some tell
an answer from a text about the same subject where others do not; many read one script only. So the
model is asked for vectors of `TEXTS`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import sqrt
from operator import mul
from pathlib import Path
from statistics import fmean, pstdev, pvariance
from typing import Final

from memory.embeddings.protocol import Vector
from memory.terms import characters

_HERE: Final = Path(__file__)
_UNRELATED: Final = _HERE.with_name("unrelated.txt").read_text(encoding="utf-8").splitlines()
"""Texts about different subjects."""
_ROWS: Final = _HERE.with_name("related.txt").read_text(encoding="utf-8").splitlines()
RELATED: Final = [tuple(row.split("|")) for row in _ROWS]
"""Statements, each with a question that it answers and one that it does not, in English and
Chinese."""
TEXTS: Final = (*chain.from_iterable(zip(*RELATED, strict=True)), *_UNRELATED)

_DEVIATIONS: Final = 3.0
_MOST: Final = 0.95
_OTHERS: Final = slice(5, 40)
"""The neighbours that an item is compared with: the first may be answers as well."""
_LIKE_AN_ANSWER: Final = 2
"""Questions about something that is known, but not this, for each about something that is not
known."""
_MOST_EVIDENCE: Final = 3.0
_LEAST_SPREAD: Final = 1e-9
_READS: Final = 1.0
"""How far answers lie from other texts, in standard deviations, for a model that reads a script.
all-MiniLM-L6-v2: 1.7 in English, 0.3 in Chinese."""
_TELLS: Final = 0.5
"""How far the scores of answers lie above those of other texts, likewise, for a model that tells
them apart."""
_VERY_NEAR: Final = 1.05
"""An item this far above unrelated texts (1: where answers are) is an answer more often than not:
found with all-MiniLM-L6-v2 on the English questions of three sets, see `bench/README.md`."""
_NEAR_SLOPE: Final = 4.5
_NEAR_ACROSS: Final = 0.37
"""Likewise between scripts, where words say nothing for or against an item: it is shown from 0.6
on. Found with Google's multilingual sentence encoder on six sets."""
_TELLS_ACROSS: Final = 2.0
"""How far answers in another script lie above the best other text there, in standard deviations,
for a model that is asked across scripts. That encoder: 2.5; multilingual-e5-small, which ranks by
script first: 1.4 and 1.9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How a model's cosines with questions of one script are read."""

    least: float
    """The least cosine that counts as near: clearly above those among texts about different
    subjects."""
    references: Sequence[Vector] = ()
    """Vectors of texts that are no answers, compared beside the items: a memory may hold few."""
    slope: float = 0.0
    """0 if the model does not tell answers from texts about the same subject."""
    middle: float = 0.0
    """The score that speaks neither for nor against an answer."""
    unrelated: float = 0.0
    """The mean cosine of a question and a text about something else."""
    answering: float = 1.0
    """The mean cosine of a question and its answer; above `unrelated`."""
    across: tuple[float, float] | None = None
    """`unrelated` and `answering` for texts of another script than the question; None: the model
    does not tell."""

    def nearness(self, cosine: float) -> float:
        """Return how near a cosine is: 0 if it is the least that counts as near, 1 if it is as high
        as an answer's.
        """
        return min(1.0, (cosine - self.least) / (self.answering - self.least))

    def evidence(self, question: Vector, cosines: Mapping[str, float]) -> dict[str, float]:
        """Return how the cosine of each of the nearest items changes the log-odds of being an
        answer.

        From -3 to 3. Empty if the model was not asked.
        """
        if not self.references:
            return {}
        background = [_cosine(question, one) for one in self.references]
        scores = _scores(list(cosines.values()), background)
        return {
            item_id: max(-_MOST_EVIDENCE, min(_MOST_EVIDENCE, self._change(cosine, score)))
            for (item_id, cosine), score in zip(cosines.items(), scores, strict=True)
        }

    def evidence_across(self, cosines: Mapping[str, float]) -> dict[str, float]:
        """Return the same for items in another script than the question; empty if the model does
        not tell.
        """
        if self.across is None:
            return {}
        unrelated, answering = self.across
        return {
            item_id: _NEAR_SLOPE * ((cosine - unrelated) / (answering - unrelated) - _NEAR_ACROSS)
            for item_id, cosine in cosines.items()
        }

    def _change(self, cosine: float, score: float) -> float:
        nearness = (cosine - self.unrelated) / (self.answering - self.unrelated)
        told = self.slope * (score - self.middle)
        return max(told, _NEAR_SLOPE * (nearness - _VERY_NEAR)) if nearness > _VERY_NEAR else told


class Readings:
    """How a model's cosines are read, by the script of the question."""

    def __init__(self, of_chinese: Calibration | None, of_others: Calibration | None) -> None:
        self._of_chinese = of_chinese
        self._of_others = of_others

    def of(self, question: str) -> Calibration | None:
        """Return how cosines with a question are read; None if the model cannot read its script."""
        return self._of_chinese if characters(question) else self._of_others


def calibrated(vectors: Sequence[Vector]) -> Readings:
    """Return how to read the cosines of the model that made these vectors of `TEXTS`."""
    return Readings(_calibration(vectors, is_chinese=True), _calibration(vectors, is_chinese=False))


def _calibration(vectors: Sequence[Vector], *, is_chinese: bool) -> Calibration | None:
    """Return how to read cosines with questions of a script; None if the model cannot read it.

    The scores of answers, and of the best texts that are no answers, count as two normal
    distributions of the same spread, as likely as each other.
    """
    count = len(RELATED)
    answered, unanswered = vectors[count : 2 * count], vectors[2 * count : 3 * count]
    references = [*vectors[:count], *vectors[3 * count :]]
    of_script = [bool(characters(text)) == is_chinese for text in TEXTS]
    are_alike = [*of_script[:count], *of_script[3 * count :]]
    right: list[float] = []
    wrong: list[float] = []
    near: list[float] = []
    far: list[float] = []
    across = _Across()
    for place, (question, other) in enumerate(zip(answered, unanswered, strict=True)):
        if not (of_script[count + place] and any(question) and any(other)):
            continue
        cosines = [_cosine(question, one) for one in references]
        across.add([*zip(cosines, are_alike, strict=True)], place)
        if are_alike[place]:
            near.append(cosines[place])
            alike = [at for at, is_alike in enumerate(are_alike) if is_alike and at != place]
            far += [cosines[at] for at in alike]
        right.append(_scores(cosines)[place])
        wrong.append(max(_scores([*cosines[:place], *cosines[place + 1 :]])))
        wrong += [max(_scores([_cosine(other, one) for one in references]))] * _LIKE_AN_ANSWER
    if not near or fmean(near) - fmean(far) < _READS * _spread(near, far):
        return None
    told, spread = fmean(right) - fmean(wrong), _spread(right, wrong)
    return Calibration(
        least=_least([vectors[at] for at in range(3 * count, len(TEXTS)) if of_script[at]]),
        references=references,
        slope=told / spread**2 if told >= _TELLS * spread else 0.0,
        middle=(fmean(right) + fmean(wrong)) / 2,
        unrelated=fmean(far),
        answering=fmean(near),
        across=across.told,
    )


class _Across:
    """The cosines of questions with texts of another script."""

    def __init__(self) -> None:
        self._answers: list[float] = []
        self._best_others: list[float] = []
        self._others: list[float] = []

    def add(self, cosines: Sequence[tuple[float, bool]], answer: int) -> None:
        """Add a question's cosines with all texts; True: of its own script."""
        others = [
            value
            for place, (value, is_alike) in enumerate(cosines)
            if not is_alike and place != answer
        ]
        self._others += others
        self._best_others.append(max(others))
        if not cosines[answer][1]:
            self._answers.append(cosines[answer][0])

    @property
    def told(self) -> tuple[float, float] | None:
        """The means of other texts and of answers; None if the answers do not stand out."""
        if not self._answers:
            return None
        above = fmean(self._answers) - fmean(self._best_others)
        if above < _TELLS_ACROSS * _spread(self._answers, self._best_others):
            return None
        return fmean(self._others), fmean(self._answers)


def _spread(one: Sequence[float], other: Sequence[float]) -> float:
    return max(_LEAST_SPREAD, sqrt((pvariance(one) + pvariance(other)) / 2))


def _least(unrelated: Sequence[Vector]) -> float:
    cosines = [_cosine(one, other) for one, other in combinations(unrelated, 2)]
    return min(_MOST, max(0.0, fmean(cosines) + _DEVIATIONS * pstdev(cosines)))


def _scores(cosines: Sequence[float], background: Sequence[float] = ()) -> list[float]:
    """Return the cosines as standard scores among the neighbours and the background."""
    others = sorted([*cosines, *background], reverse=True)[_OTHERS]
    mean, spread = fmean(others), max(_LEAST_SPREAD, pstdev(others))
    return [(cosine - mean) / spread for cosine in cosines]


def _cosine(one: Vector, other: Vector) -> float:
    return sum(map(mul, one, other), 0.0)
