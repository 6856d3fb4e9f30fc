"""How similar two cases are, section by section: each section is a vector of its own.

One vector of a whole case would mostly represent its longest section, and two causes of one symptom
would look alike.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

import anyio
import anyio.to_thread

from memory.cases.case import Case, CaseContent
from memory.cases.fingerprint import words
from memory.embeddings.protocol import Embedder, Vector

KEPT_SECTIONS: Final = 1024
"""Cached vectors, about 4 kB each with as much text at most."""
MAX_CHARS: Final = 4_000
"""Characters of a section that are compared, from its beginning."""
MAX_COMPARED_CHARS: Final = 60_000
"""Characters of all cases that one content is compared with; cases beyond are `NOT_SIMILAR`."""

_MAX_THREADS: Final = 2
_CURVES: Final[dict[str, tuple[tuple[float, float], ...]]] = {
    "hashed-1": ((0.0, 0.0), (0.3, 0.55), (0.42, 0.7), (0.52, 0.8), (1.0, 1.0)),
}
"""From cosine to similarity by model, linear between the points.

The thresholds of relations are those of models that know meaning; hashed vectors lie further apart.
Measured on pairs of incidents with the same and with different causes (`python -m bench.cases`).
"""
_IDENTITY: Final = ((0.0, 0.0), (1.0, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionSimilarity:
    """How similar the sections of two cases are, 0 to 1 each; None where either
    lacks the section.
    """

    symptom: float | None
    diagnosis: float | None
    root_cause: float | None


NOT_SIMILAR: Final = SectionSimilarity(symptom=0.0, diagnosis=0.0, root_cause=0.0)


class SectionComparer:
    """Compares cases by their sections; safe to use from many tasks."""

    def __init__(self, embedder: Embedder, *, kept: int = KEPT_SECTIONS) -> None:
        self._embedder = embedder
        self._curve = _CURVES.get(embedder.model_id, _IDENTITY)
        self._vector = lru_cache(maxsize=kept)(self._embedded)
        self._limiter = anyio.CapacityLimiter(_MAX_THREADS)

    async def compare(
        self, content: CaseContent, others: Sequence[Case]
    ) -> list[SectionSimilarity]:
        """Return the similarity of a content to each of the others, in their order.

        Runs in a worker thread. Cases beyond `MAX_COMPARED_CHARS` are `NOT_SIMILAR`.
        """
        if not others:
            return []
        return await anyio.to_thread.run_sync(
            self._compare_blocking, content, others, limiter=self._limiter, abandon_on_cancel=True
        )

    def _compare_blocking(
        self, content: CaseContent, others: Sequence[Case]
    ) -> list[SectionSimilarity]:
        left = MAX_COMPARED_CHARS
        similarities = []
        for other in others:
            length = compared_chars(other.content)
            if length > left:
                similarities.append(NOT_SIMILAR)
                continue
            left -= length
            similarities.append(self._similarity(content, other.content))
        return similarities

    def _similarity(self, one: CaseContent, other: CaseContent) -> SectionSimilarity:
        return SectionSimilarity(
            symptom=self._similar(one.symptom_summary, other.symptom_summary),
            diagnosis=self._similar(one.diagnosis, other.diagnosis),
            root_cause=self._similar(one.root_cause, other.root_cause),
        )

    def _similar(self, one: str, other: str) -> float | None:
        if not one.strip() or not other.strip():
            return None
        if one == other:
            return 1.0
        mine, theirs = self._vector(one[:MAX_CHARS]), self._vector(other[:MAX_CHARS])
        return _on_curve(self._curve, sum(a * b for a, b in zip(mine, theirs, strict=True)))

    def _embedded(self, text: str) -> Vector:
        plain = " ".join(words(text)) or text
        return array("d", self._embedder.embed_blocking([plain])[0])


def compared_chars(content: CaseContent) -> int:
    """Return how many characters of a content are compared."""
    sections = (content.symptom_summary, content.diagnosis, content.root_cause)
    return sum(min(len(text), MAX_CHARS) for text in sections)


def _on_curve(curve: Sequence[tuple[float, float]], cosine: float) -> float:
    bounded = min(1.0, max(0.0, cosine))
    for (low, at_low), (high, at_high) in pairwise(curve):
        if bounded <= high:
            return at_low + (at_high - at_low) * (bounded - low) / (high - low)
    return 1.0
