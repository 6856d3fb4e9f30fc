"""How similar two cases are, section by section, by their words and parts of words. Pure.

One comparison of whole cases would mostly compare their longest sections, and two causes of one
symptom would look alike.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import log, sqrt
from typing import Final

from memory.cases.case import Case, CaseContent
from memory.cases.fingerprint import words
from memory.recall.question_words import STOP_TERMS
from memory.text.terms import terms

MAX_CHARS: Final = 4_000
"""Characters of a section that are compared, from its beginning."""
MAX_COMPARED_CHARS: Final = 60_000
"""Characters of all cases that one content is compared with; cases beyond are `NOT_SIMILAR`."""

_KEPT_SECTIONS: Final = 1024
_PIECE: Final = 3
_PIECE_WEIGHT: Final = 0.9
"""Of all pieces of a word together; the word itself weighs 1."""
_CURVE: Final = ((0.0, 0.0), (0.3, 0.55), (0.42, 0.7), (0.52, 0.8), (1.0, 1.0))
"""From cosine to similarity, linear between the points.

The thresholds of relations are those of models that know meaning; texts lie further apart by their
words. Measured on pairs of incidents with the same and with different causes (`python -m
bench.cases`).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionSimilarity:
    """How similar the sections of two cases are, 0 to 1 each; None where either case lacks the
    section.
    """

    symptom: float | None
    diagnosis: float | None
    root_cause: float | None


NOT_SIMILAR: Final = SectionSimilarity(symptom=0.0, diagnosis=0.0, root_cause=0.0)


def compare_sections(content: CaseContent, others: Sequence[Case]) -> list[SectionSimilarity]:
    """Return the similarity of a content to each of the others, in their order.

    Cases beyond `MAX_COMPARED_CHARS` are `NOT_SIMILAR`.
    """
    left = MAX_COMPARED_CHARS
    similarities = []
    for other in others:
        length = compared_chars(other.content)
        if length > left:
            similarities.append(NOT_SIMILAR)
            continue
        left -= length
        similarities.append(_similarity(content, other.content))
    return similarities


def compared_chars(content: CaseContent) -> int:
    """Return how many characters of a content are compared."""
    sections = (content.symptom_summary, content.diagnosis, content.root_cause)
    return sum(min(len(text), MAX_CHARS) for text in sections)


def _similarity(one: CaseContent, other: CaseContent) -> SectionSimilarity:
    return SectionSimilarity(
        symptom=_similar(one.symptom_summary, other.symptom_summary),
        diagnosis=_similar(one.diagnosis, other.diagnosis),
        root_cause=_similar(one.root_cause, other.root_cause),
    )


def _similar(one: str, other: str) -> float | None:
    if not one.strip() or not other.strip():
        return None
    if one == other:
        return 1.0
    mine, theirs = _features_of(one[:MAX_CHARS]), _features_of(other[:MAX_CHARS])
    return _on_curve(sum(weight * theirs.get(feature, 0.0) for feature, weight in mine.items()))


@lru_cache(maxsize=_KEPT_SECTIONS)
def _features_of(text: str) -> Mapping[str, float]:
    """Return the words of a text and their pieces with their weights, a vector of length 1."""
    counts = Counter(term for term in terms(" ".join(words(text))) if term not in STOP_TERMS)
    weights: defaultdict[str, float] = defaultdict(float)
    for term, count in counts.items():
        weights[term] += 1 + log(count)
        pieces = list(_pieces(term))
        for piece in pieces:
            weights[piece] += (1 + log(count)) * _PIECE_WEIGHT / sqrt(len(pieces))
    length = sqrt(sum(weight * weight for weight in weights.values()))
    return {feature: weight / length for feature, weight in weights.items()}


def _pieces(term: str) -> Iterator[str]:
    """Yield three characters each of a longer word, with marks at its beginning and end."""
    if len(term) > _PIECE:
        framed = f"^{term}$"
        yield from (f"{framed[at : at + _PIECE]}…" for at in range(len(framed) - _PIECE + 1))


def _on_curve(cosine: float) -> float:
    for (low, at_low), (high, at_high) in pairwise(_CURVE):
        if cosine <= high:
            return at_low + (at_high - at_low) * (cosine - low) / (high - low)
    return 1.0
