"""Embedders, which make vectors of texts."""

from collections.abc import Sequence
from typing import Protocol

Vector = Sequence[float]


class Embedder(Protocol):
    """Makes vectors of unit length, deterministically."""

    @property
    def model_id(self) -> str:
        """Names the model and its version; vectors of different models are never compared."""
        ...

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        ...

    def embed_blocking(self, texts: Sequence[str]) -> list[list[float]]:
        """Make a vector for each text, in their order; an empty text gets the zero vector."""
        ...
