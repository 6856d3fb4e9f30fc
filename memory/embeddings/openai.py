"""Vectors from a server that speaks OpenAI's embeddings: OpenAI, Ollama, LiteLLM, vLLM, TEI, Voyage
and others.

Items are embedded in batches, with retries. A question gets one try within the deadline of its
search; a server that fails such questions again and again is left alone for a while. Texts that are
too long for the model are cut.
"""

import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anyio

from memory.clock import Now
from memory.embeddings.protocol import Vector
from memory.errors import BackendUnavailable, DeliveryRefused
from memory.remote.breaker import Breaker, BreakerLimits, BreakerState, guarding
from memory.remote.json_service import Answer, JsonService

NAME: Final = "The embeddings server"
_TIMEOUT_S: Final = 20.0
_MAX_BYTES: Final = 32 * 1024 * 1024
_BATCH: Final = 50
_BATCH_CHARS: Final = 60_000
_WAITS_S: Final = (0.5, 2.0)
"""Before the second and the third try."""
_LONGEST_WAIT_S: Final = 30.0
"""Of what a server asks for with `Retry-After`."""
_LEAST_CHARS: Final = 200
"""A text that is refused is halved until it is as short as this."""
_PLAIN: Final = "A plain sentence."
_REFUSED: Final = frozenset({400, 413, 415, 422})
_HINTS: Final = {
    401: "refuses the key; check CANDOR_EMBEDDINGS_KEY",
    403: "refuses the key; check CANDOR_EMBEDDINGS_KEY",
    404: "has no such address or model; check CANDOR_EMBEDDINGS_URL and CANDOR_EMBEDDINGS_MODEL",
}
_OK: Final = range(200, 300)

Asking = Callable[[Sequence[str]], Awaitable[list[list[float]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Embeddings:
    """Where vectors come from."""

    base_url: str
    """Ends before `/embeddings`."""
    model: str
    api_key: str = field(default="", repr=False)


class _Temporary(BackendUnavailable):
    """The server may answer soon; it may have said when."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class EmbeddingService:
    """The server's route, one request a call."""

    def __init__(self, embeddings: Embeddings, *, timeout_s: float = _TIMEOUT_S) -> None:
        self._model = embeddings.model
        self._service = JsonService(
            embeddings.base_url.rstrip("/").removesuffix("/embeddings"),
            name=NAME,
            timeout_s=timeout_s,
            max_bytes=_MAX_BYTES,
            api_key=embeddings.api_key,
        )

    async def vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, all of one length, as the server gives them.

        Raises:
            BackendUnavailable: the server failed, or did not answer vectors.
            DeliveryRefused: the server refuses the texts.
        """
        found: list[list[float]] = []
        for batch in _batches(texts):
            body = {"model": self._model, "input": batch}
            found += _vectors_of(await self._ask(body), len(batch))
        if len({len(vector) for vector in found}) > 1:
            raise BackendUnavailable(f"{NAME} answered vectors of several lengths.")
        return found

    async def _ask(self, body: Any) -> Any:
        try:
            answer = await self._service.call("POST", "/embeddings", body)
        except BackendUnavailable as exc:
            raise _Temporary(str(exc)) from exc
        return _checked(answer)

    async def close(self) -> None:
        await self._service.close()


class OpenAiEmbedder:
    """See `TextEmbedder`."""

    def __init__(
        self,
        embeddings: Embeddings,
        *,
        mask: Callable[[str], str],
        now: Now,
        limits: BreakerLimits | None = None,
        on_breaker: Callable[[BreakerState], None] = lambda _: None,
        waits_s: Sequence[float] = _WAITS_S,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self._model = embeddings.model
        self._service = EmbeddingService(embeddings, timeout_s=timeout_s)
        self._mask = mask
        self._now = now
        self._breaker = Breaker(limits or BreakerLimits(), on_breaker)
        self._waits_s = waits_s
        self._sleep = sleep

    @property
    def model_id(self) -> str:
        return f"openai:{self._model}"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """See `TextEmbedder.embed`; a text without words gets an empty vector."""
        vectors: list[Vector] = [()] * len(texts)
        places = [place for place, text in enumerate(texts) if text.strip()]
        made = await self._fitted([texts[place] for place in places], self._retried)
        for place, vector in zip(places, made, strict=True):
            vectors[place] = _unit(vector)
        return vectors

    async def embed_question(self, text: str) -> Vector:
        """See `TextEmbedder.embed_question`; secrets in the question are masked."""
        if not text.strip():
            return ()
        with guarding(self._breaker, self._now):
            (vector,) = await self._fitted([self._mask(text)], self._service.vectors)
        return _unit(vector)

    async def close(self) -> None:
        await self._service.close()

    async def _fitted(self, texts: Sequence[str], ask: Asking) -> list[list[float]]:
        """Ask for vectors; halve what the server refuses, first the texts, then the text."""
        if not texts:
            return []
        try:
            return await ask(texts)
        except DeliveryRefused as exc:
            if len(texts) > 1:
                half = len(texts) // 2
                first = await self._fitted(texts[:half], ask)
                return first + await self._fitted(texts[half:], ask)
            (text,) = texts
            if len(text) > _LEAST_CHARS:
                return await self._fitted([text[: len(text) // 2]], ask)
            await self._refuse_all(ask, exc)
            return [[]]

    async def _refuse_all(self, ask: Asking, refused: DeliveryRefused) -> None:
        """Raise `BackendUnavailable` if the server refuses any text, not the one alone."""
        try:
            await ask([_PLAIN])
        except DeliveryRefused:
            raise BackendUnavailable(str(refused)) from refused

    async def _retried(self, texts: Sequence[str]) -> list[list[float]]:
        for wait_s in self._waits_s:
            try:
                return await self._service.vectors(texts)
            except _Temporary as exc:
                await self._sleep(min(_LONGEST_WAIT_S, exc.retry_after_s or wait_s))
        return await self._service.vectors(texts)


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for text in texts:
        is_full = sum(map(len, batch)) + len(text) > _BATCH_CHARS or len(batch) == _BATCH
        if batch and is_full:
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


def _checked(answer: Answer) -> Any:
    status = answer.status
    if status in _REFUSED:
        raise DeliveryRefused(f"{NAME} refused it (HTTP {status}).")
    if status in _HINTS:
        raise BackendUnavailable(f"{NAME} {_HINTS[status]} (HTTP {status}).")
    if status not in _OK:
        raise _Temporary(f"{NAME} failed (HTTP {status}).", answer.retry_after_s)
    return answer.body


def _vectors_of(answer: Any, count: int) -> list[list[float]]:
    try:
        rows = {int(row["index"]): list(map(float, row["embedding"])) for row in answer["data"]}
        vectors = [rows[place] for place in range(count)]
        is_sound = count == len(answer["data"])
    except (KeyError, TypeError, ValueError, OverflowError):
        vectors, is_sound = [], False
    if not is_sound or not all(vector and all(map(math.isfinite, vector)) for vector in vectors):
        raise BackendUnavailable(f"{NAME} answered no vectors.")
    return vectors


def _unit(vector: Sequence[float]) -> Vector:
    length = math.hypot(*vector)
    return [number / length for number in vector] if length else ()
