"""An embedder without a trained model, to measure how vectors enter recall's decision where no model is at hand.

It knows `stand_in.txt`, 593 groups of English and Chinese everyday words that were written without a look at any set,
and other words by themselves. All texts share a direction, and each vector has noise. With a `separation` a question
and its answers share a further direction, more or less of it (normally distributed, half of the separation wide):
what a model would add that tells answers from texts about the same subject. It says nothing about a real model.
"""

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import log
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench.person.corpus import PersonSet
from memory.embeddings.calibration import RELATED
from memory.embeddings.protocol import Vector
from memory.recall.question_words import STOP_TERMS

Floats = NDArray[np.float64]

_DIMENSION: Final = 384
_NOISE: Final = 0.4
_COMMON: Final = 1.2
_PART: Final = re.compile(r"[\u3400-\u9fff]+|[^\W\u3400-\u9fff_]+")
_ENDINGS: Final = (
    *(("", ""), ("ies", "y"), ("es", ""), ("s", ""), ("ing", ""), ("ing", "e")),
    *(("ed", ""), ("ed", "e"), ("er", "")),
)


def _groups() -> dict[str, list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    text = Path(__file__).with_name("stand_in.txt").read_text(encoding="utf-8")
    for number, row in enumerate(text.splitlines()):
        for word in row.replace("|", " ").split():
            groups[word].append(f"group {number}")
    return groups


_GROUPS: Final = _groups()
_LONGEST: Final = 5


class StandIn:
    """See `TextEmbedder`."""

    model_id = "stand-in"

    def __init__(self, person: PersonSet, separation: float = 0.0) -> None:
        self._questions = {
            question.text: [answer.contains for answer in question.answers]
            for question in person.questions
            if question.answers
        } | {question: [statement] for statement, question, _ in RELATED}
        self._separation = separation

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self._vector(text, self._answered(text)) for text in texts]

    async def embed_question(self, text: str) -> Vector:
        return self._vector(text, [text] if text in self._questions else [])

    async def close(self) -> None:
        pass

    def _answered(self, text: str) -> list[str]:
        """Return the questions that a text answers, or a question itself."""
        if text in self._questions:
            return [text]
        return [
            question
            for question, answers in self._questions.items()
            if any(answer in text for answer in answers)
        ]

    def _vector(self, text: str, questions: Sequence[str]) -> Vector:
        vector = np.zeros(_DIMENSION)
        for (name, weight), count in Counter(_features(text)).items():
            vector += (1 + log(count)) * weight * _direction(name)
        length = np.linalg.norm(vector) or 1.0
        vector = vector / length + _NOISE * _direction(text) + _COMMON * _direction("any text")
        vector /= np.linalg.norm(vector)
        for question in questions:
            vector += self._strength(question) * _direction(f"answer to {question}")
        return list(map(float, vector / np.linalg.norm(vector)))

    def _strength(self, question: str) -> float:
        drawn = np.random.default_rng(_seed(question)).normal(1.0, 0.5)
        return self._separation * max(0.0, float(drawn))


def _features(text: str) -> Iterator[tuple[str, float]]:
    """Yield groups and words with their weights; a Chinese run is read from left to right, the longest word first."""
    for part in _PART.findall(unicodedata.normalize("NFKC", text).casefold()):
        if "\u3400" <= part[0] <= "\u9fff":
            yield from _chinese(part)
        elif part not in STOP_TERMS:
            forms = (part.removesuffix(old) + new for old, new in _ENDINGS if part.endswith(old))
            groups = next((_GROUPS[form] for form in forms if form in _GROUPS), [])
            yield from ((group, 1.0) for group in groups)
            yield part, 0.4 if groups else 1.2


def _chinese(run: str) -> Iterator[tuple[str, float]]:
    at, unread = 0, ""
    while at < len(run):
        words = (run[at : at + length] for length in range(_LONGEST, 0, -1))
        word = next((word for word in words if word in _GROUPS), "")
        if word:
            yield from ((group, 1.0) for group in _GROUPS[word])
        unread = "" if word else unread + run[at]
        if len(unread) > 1:
            yield unread[-2:], 0.5
        at += len(word) or 1


def _seed(name: str) -> int:
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@lru_cache(maxsize=100_000)
def _direction(name: str) -> Floats:
    drawn = np.random.default_rng(_seed(name))
    return drawn.normal(0.0, _DIMENSION**-0.5, _DIMENSION)
