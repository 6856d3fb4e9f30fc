"""Embedders, which make vectors of texts: in this process, or at a service."""

from collections.abc import Sequence
from typing import Final, Protocol

import anyio
import anyio.to_thread

from memory.errors import BackendUnavailable

Vector = Sequence[float]

_AT_ONCE: Final = 4


class ModelMissing(Exception):
    """The model is missing or wrong; the text is one sentence for people."""


class Embedder(Protocol):
    """Makes vectors of unit length in this process, deterministically."""

    @property
    def model_id(self) -> str:
        """Names the model and its version; vectors of different models are never compared."""
        ...

    def embed_blocking(self, texts: Sequence[str]) -> list[list[float]]:
        """Make a vector for each text, in their order; an empty text gets the zero vector.

        Raise `ModelMissing` if the model cannot be used.
        """
        ...


class TextEmbedder(Protocol):
    """Makes vectors of unit length, all of one dimension, which the first ones tell."""

    @property
    def model_id(self) -> str:
        """Names the model; vectors of different models are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Make a vector for each text, in their order; zero or empty for a text that it cannot
        read.

        May take long and try again; stops when cancelled. Raise `BackendUnavailable` if no vectors
        could be made.
        """
        ...

    async def embed_question(self, text: str) -> Vector:
        """Make the vector of a question, in one try.

        Raises:
            BackendResting: it failed so often lately that it was not asked.
            BackendUnavailable: no vector could be made.
        """
        ...

    async def close(self) -> None:
        """Release all resources; idempotent."""
        ...


class ThreadedEmbedder:
    """An embedder of this process as a `TextEmbedder`, in one worker thread at a time.

    It takes a few texts at a time, so that a question does not wait for all items that are being
    indexed.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._limiter = anyio.CapacityLimiter(1)

    @property
    def model_id(self) -> str:
        return self._embedder.model_id

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), _AT_ONCE):
            try:
                vectors += await anyio.to_thread.run_sync(
                    self._embedder.embed_blocking,
                    texts[start : start + _AT_ONCE],
                    limiter=self._limiter,
                    abandon_on_cancel=True,
                )
            except ModelMissing as exc:
                raise BackendUnavailable(str(exc)) from exc
        return vectors

    async def embed_question(self, text: str) -> Vector:
        return (await self.embed([text]))[0]

    async def close(self) -> None:
        pass
