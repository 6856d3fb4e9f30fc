"""Vectors without a model: feature hashing of terms and of their trigrams.

Each feature adds a signed share to one dimension (Weinberger et al., "Feature Hashing for Large
Scale Multitask Learning", ICML 2009). Texts are near that share words or parts of words: spelling
variants, word forms. It knows no synonyms, needs no model and is the same everywhere.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import log, sqrt
from typing import Final

from memory.recall.question_words import STOP_TERMS
from memory.text.terms import terms

DIMENSION: Final = 512
_MAX_TERMS: Final = 1000
_PIECE: Final = 3
_PIECE_WEIGHT: Final = 0.9
_CACHED: Final = 50_000


class HashedEmbedder:
    """See `Embedder`; always available."""

    model_id = "hashed-1"
    """The number changes whenever vectors would."""

    def embed_blocking(self, texts: Sequence[str]) -> list[list[float]]:
        """Make a vector of unit length for each text; one without words gets the zero vector."""
        return [_vector(text) for text in texts]


def _vector(text: str) -> list[float]:
    counts = Counter(term for term in terms(text)[:_MAX_TERMS] if term not in STOP_TERMS)
    vector = [0.0] * DIMENSION
    for term, count in counts.items():
        weight = 1 + log(count)
        for place, sign, share in _features(term):
            vector[place] += sign * share * weight
    length = sqrt(sum(number * number for number in vector))
    return [number / length for number in vector] if length else vector


@lru_cache(maxsize=_CACHED)
def _features(term: str) -> tuple[tuple[int, float, float], ...]:
    pieces = list(_pieces(term))
    share = _PIECE_WEIGHT / sqrt(len(pieces)) if pieces else 0.0
    return (_hashed(f"w:{term}", 1.0), *(_hashed(f"p:{piece}", share) for piece in pieces))


def _pieces(term: str) -> Iterator[str]:
    if len(term) > _PIECE:
        framed = f"^{term}$"
        yield from (framed[at : at + _PIECE] for at in range(len(framed) - _PIECE + 1))


def _hashed(feature: str, share: float) -> tuple[int, float, float]:
    digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    number = int.from_bytes(digest, "little")
    return number % DIMENSION, 1.0 if number >> 63 else -1.0, share
