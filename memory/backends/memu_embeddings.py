"""Vectors from an OpenAI-compatible endpoint, in the form in which memU's package asks for them."""

import math
from dataclasses import dataclass, field
from typing import Any, Final

import anyio.from_thread

from memory.backends.memu_http import JsonService
from memory.outbox.backend import BackendUnavailable

_TIMEOUT_S: Final = 20.0
_MAX_BYTES: Final = 32 * 1024 * 1024
_BATCH: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Embeddings:
    """Where vectors come from."""

    base_url: str
    """Ends before `/embeddings`."""
    model: str
    api_key: str = field(default="", repr=False)


class EmbeddingService:
    """The endpoint."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._model = embeddings.model
        self._service = JsonService(
            embeddings.base_url,
            name="The embeddings endpoint",
            timeout_s=_TIMEOUT_S,
            max_bytes=_MAX_BYTES,
            api_key=embeddings.api_key,
        )

    async def vectors(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each text, all of one length.

        Raises:
            BackendUnavailable: the endpoint failed, or did not answer vectors.
            DeliveryRefused: the endpoint refuses the texts.
        """
        found: list[list[float]] = []
        for start in range(0, len(texts), _BATCH):
            some = texts[start : start + _BATCH]
            body = {"model": self._model, "input": some, "encoding_format": "float"}
            answer = await self._service.ask("POST", "/embeddings", body)
            found += _vectors_of(answer, len(some))
        if len({len(vector) for vector in found}) > 1:
            raise BackendUnavailable("The embeddings endpoint answered vectors of several lengths.")
        return found

    async def close(self) -> None:
        """Close its connections; idempotent."""
        await self._service.close()


class EmbeddingClient:
    """Embeds for memU's worker thread; the request runs on the loop, where it can be cancelled."""

    def __init__(self, service: EmbeddingService) -> None:
        self._service = service

    async def embed(self, inputs: list[str]) -> tuple[list[list[float]], None]:
        """Return vectors, without the raw answer."""
        return anyio.from_thread.run(self._service.vectors, inputs), None


def _vectors_of(answer: Any, count: int) -> list[list[float]]:
    try:
        rows = sorted(answer["data"], key=lambda row: int(row["index"]))
        vectors = [[float(number) for number in row["embedding"]] for row in rows]
        places = [int(row["index"]) for row in rows]
    except (KeyError, TypeError, ValueError, OverflowError) as exc:
        raise BackendUnavailable("The embeddings endpoint answered no vectors.") from exc
    is_sound = places == list(range(count)) and all(
        vector and all(math.isfinite(number) for number in vector) for vector in vectors
    )
    if not is_sound:
        raise BackendUnavailable("The embeddings endpoint answered no vectors.")
    return vectors
