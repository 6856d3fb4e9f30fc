"""Maintains the vector index: receives deliveries, answers searches, and rebuilds the index.

The database is the truth. An index that is missing, damaged, made by another model or short of
items is rebuilt from it in the background; until then searches use words alone and say so. What is
written meanwhile comes through the outbox. Both take turns, so that nothing that was forgotten
comes back.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final, Literal, Protocol

import anyio

from memory.embeddings.protocol import TextEmbedder, Vector
from memory.errors import BackendResting, BackendUnavailable, StoreUnavailable
from memory.items.item import Item
from memory.items.store import NumberedItem
from memory.outbox.backend import BackendHealth
from memory.outbox.delivery import Link
from memory.recall.retrievers import Candidate, Question, RetrieverAnswer, RetrieverName
from memory.vectors.protocol import (
    DimensionMismatch,
    IndexState,
    IndexStateStore,
    IndexUnavailable,
    VectorEntry,
    VectorHit,
    VectorIndex,
)

_log = logging.getLogger(__name__)

BACKEND: Final = "vectors"
IndexerState = Literal["rebuilding", "ok", "failing"]

_REBUILD_BATCH: Final = 50
_RETRY_S: Final = 30.0
_FOLLOW_S: Final = 2.0
_MAX_EMBEDDED_CHARS: Final = 4000
"""An item is embedded by its title, summary and the beginning of its text."""
_MAX_QUESTION_CHARS: Final = 2000
_TRIED: Final = ("A round trip.", "一次往返。")
"""Texts that tell the dimension."""
_STANDS_OUT: Final = 0.1
"""How far towards 1 from the middle, measured with Google's multilingual encoder, see
`bench/README.md`.
"""
_LEAST_COMPARED: Final = 12
_UNRELATED: Final = 0.1


class Source(Protocol):
    """The items to index."""

    async def after(self, seq: int, limit: int) -> list[NumberedItem]:
        """Return items in the order of writing, those after `seq`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFiles:
    """How an index of vectors of one model and dimension is opened."""

    open: Callable[[str, int], VectorIndex]
    is_sound: Callable[[str, int], Awaitable[bool]]
    """Return whether it can be opened and searched."""
    place: str | None = None
    """Where it is, as a sentence, if that is to be reported."""


class VectorIndexer:
    """The vector index as a `Backend`. `run` it in a task group; close it afterwards."""

    name = BACKEND

    def __init__(
        self,
        files: IndexFiles,
        embedder: TextEmbedder,
        source: Source,
        states: IndexStateStore,
    ) -> None:
        self._files = files
        self._embedder = embedder
        self._source = source
        self._states = states
        self._index: VectorIndex | None = None
        self._dimension = 0
        self._state: IndexerState = "rebuilding"
        self._detail: str | None = "It is being opened."
        self._broken = anyio.Event()
        self._settled = anyio.Event()
        self._turn = anyio.Lock()
        self._unanswered: str | None = None
        """Why the last question got no vector; None if it got one."""
        self._has_answered = False
        """True once a question got a vector: the model of the first is yet to be loaded."""

    @property
    def place(self) -> str | None:
        """Where the index is, as a sentence, if that is to be reported."""
        return self._files.place

    async def run(self) -> None:
        """Open the index and rebuild it whenever that is needed, until cancelled."""
        while True:
            self._broken = anyio.Event()
            try:
                await self._complete()
            except (
                *(IndexUnavailable, DimensionMismatch, StoreUnavailable, BackendUnavailable),
            ) as exc:
                self._set("failing", str(exc))
                _log.warning("vector_index_not_made", exc_info=True)
                with anyio.move_on_after(_RETRY_S):
                    await self._broken.wait()
                continue
            self._set("ok", self.place)
            await self._broken.wait()

    async def follow(self) -> None:
        """Search the index that another server makes and keeps, until cancelled."""
        while True:
            try:
                state = await self._states.get()
                if state is None or not state.complete or not self._is_mine(state):
                    self._set("rebuilding", "Another server makes it.")
                else:
                    self._use(state.dimension)
                    self._set("ok", self.place)
            except StoreUnavailable as exc:
                self._set("failing", str(exc))
            await anyio.sleep(_FOLLOW_S)

    def _is_mine(self, state: IndexState) -> bool:
        return state.model_id == self._embedder.model_id

    async def wait_settled(self) -> None:
        """Wait until the index is complete, or has failed."""
        await self._settled.wait()

    def rebuild(self) -> None:
        """Check the index, and rebuild it if needed."""
        self._set("rebuilding", "It is being rebuilt.")
        self._broken.set()

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        """Find what is near in meaning."""
        if self._state == "failing":
            return RetrieverAnswer(degraded=("vector_error",))
        is_rebuilding = self._state == "rebuilding"
        if (is_rebuilding or not self._has_answered) and not await self._source.after(0, 1):
            return RetrieverAnswer()  # where nothing is stored, nothing is missed
        if is_rebuilding:
            return RetrieverAnswer(degraded=("vector_rebuilding",))
        try:
            vector = await self._embedder.embed_question(question.text[-_MAX_QUESTION_CHARS:])
        except BackendUnavailable as exc:
            self._unanswered = str(exc)
            is_resting = isinstance(exc, BackendResting)
            return RetrieverAnswer(degraded=("breaker_open" if is_resting else "vector_error",))
        self._unanswered, self._has_answered = None, True
        if not any(vector):
            return RetrieverAnswer()
        try:
            index = await self._opened()
            hits = await index.nearest(vector, question.scope.readable_owners, limit=limit)
        except (IndexUnavailable, DimensionMismatch):
            self.rebuild()
            return RetrieverAnswer(degraded=("vector_error",))
        return RetrieverAnswer(candidates=_standing_out(hits))

    async def missing(self, item_ids: Sequence[str]) -> set[str]:
        """Return which of these items the index lacks; none unless it is complete."""
        if self._state != "ok":
            return set()
        try:
            return await (await self._opened()).missing(item_ids)
        except IndexUnavailable:
            self.rebuild()
            return set()

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:  # noqa: ARG002
        index = await self._opened()
        entries = await self._entries([item])
        await self._as_delivery(lambda: index.put(entries))
        return [Link(item_id=item.id, backend=BACKEND, remote_kind="vector", remote_id=item.id)]

    async def forget(
        self,
        item_id: str,
        links: Sequence[Link],  # noqa: ARG002
        idempotency_key: str,  # noqa: ARG002
    ) -> None:
        index = await self._opened()
        await self._as_delivery(lambda: index.remove([item_id]))

    async def check(self) -> BackendHealth:
        if self._state == "ok" and self._unanswered is not None:
            return BackendHealth(name=BACKEND, state="failing", detail=self._unanswered)
        return BackendHealth(name=BACKEND, state=self._state, detail=self._detail)

    async def close(self) -> None:
        if self._index is not None:
            await self._index.close()
        await self._embedder.close()

    async def _opened(self) -> VectorIndex:
        """Return the index, opened for vectors of the embedder's dimension.

        Raise `BackendUnavailable` if the dimension is not known, and the embedder does not tell it.
        """
        if self._index is None:
            state = await self._states.get()
            is_known = state is not None and self._is_mine(state)
            dimension = state.dimension if state is not None and is_known else await self._ask()
            if self._index is None:
                self._use(dimension)
        assert self._index is not None, "it was opened"
        return self._index

    def _use(self, dimension: int) -> VectorIndex:
        if self._index is None or dimension != self._dimension:
            self._dimension = dimension
            self._index = self._files.open(self._embedder.model_id, dimension)
        return self._index

    async def _ask(self) -> int:
        """Return the dimension of the embedder's vectors."""
        vectors = await self._embedder.embed(_TRIED)
        dimensions = {len(vector) for vector in vectors if any(vector)}
        if len(dimensions) != 1:
            raise BackendUnavailable("The embedder made no vectors of one dimension.")
        return dimensions.pop()

    async def _as_delivery(self, work: Callable[[], Awaitable[None]]) -> None:
        async with self._turn:
            try:
                await work()
            except (IndexUnavailable, DimensionMismatch) as exc:
                if self._state == "ok":
                    self.rebuild()
                raise BackendUnavailable(str(exc)) from exc

    async def _complete(self) -> None:
        dimension = await self._ask()
        index = await self._opened()
        if dimension != self._dimension:  # the model behind the name is another one
            await index.close()
            index = self._use(dimension)
        state = await self._states.get()
        wanted = IndexState(model_id=self._embedder.model_id, dimension=dimension)
        made_so = state is not None and (
            (state.model_id, state.dimension) == (wanted.model_id, wanted.dimension)
        )
        if state is None or not made_so or not await self._is_usable(index, state):
            self._set("rebuilding", "It is being rebuilt.")
            async with self._turn:
                await self._states.put(wanted)
                await index.clear()
            state = wanted
        if not state.complete:
            self._set("rebuilding", "It is being rebuilt.")
            await self._build(index, state)

    async def _is_usable(self, index: VectorIndex, state: IndexState) -> bool:
        """Return whether the index can be continued: sound, and not short of items."""
        async with self._turn:
            # two processes that write to one index wait for each other, this one with the
            # interpreter's lock
            await index.close()
            if not await self._files.is_sound(state.model_id, state.dimension):
                return False
        try:
            count = await index.count()
        except (IndexUnavailable, DimensionMismatch):
            return False
        return not state.complete or count >= await self._states.expected_count(BACKEND)

    async def _build(self, index: VectorIndex, state: IndexState) -> None:
        """Index all stored items, a batch at a time, and store the progress."""
        built_to = state.built_to
        while True:
            async with self._turn:
                some = await self._source.after(built_to, _REBUILD_BATCH)
                if some:
                    await index.put(await self._entries([entry.item for entry in some]))
                    built_to = some[-1].seq
                await self._states.put(replace(state, built_to=built_to, complete=not some))
            if not some:
                return

    async def _entries(self, items: Sequence[Item]) -> list[VectorEntry]:
        vectors = await self._embedder.embed([_embedded(item) for item in items])
        return [
            VectorEntry(
                item_id=item.id,
                owner_id=item.scope.owner_id,
                vector=vector if any(vector) else self._wordless,
            )
            for item, vector in zip(items, vectors, strict=True)
        ]

    @property
    def _wordless(self) -> Vector:
        """The vector of an item without words: it is counted, and no question
        has this direction.
        """
        return [1.0, *[0.0] * (self._dimension - 1)]

    def _set(self, state: IndexerState, detail: str | None) -> None:
        self._state, self._detail = state, detail
        if state != "rebuilding":
            self._settled.set()
        elif self._settled.is_set():
            self._settled = anyio.Event()


class VectorRetriever:
    """The indexer as a retriever."""

    name: RetrieverName = "vector"

    def __init__(self, indexer: VectorIndexer) -> None:
        self._indexer = indexer

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        """Find what is near in meaning."""
        return await self._indexer.find(question, limit=limit)


def _standing_out(hits: Sequence[VectorHit]) -> list[Candidate]:
    """Return the hits that are clearly nearer than the middle of the nearest.

    Models differ in the cosine of unrelated texts, from near 0 to 0.75, so it is taken from the
    answer itself.
    """
    if not hits:
        return []
    middle = median(hit.similarity for hit in hits)
    if len(hits) < _LEAST_COMPARED:  # a small memory may hold nothing but answers
        middle = min(middle, _UNRELATED)
    least = middle + _STANDS_OUT * (1 - middle)
    best = max(hit.similarity for hit in hits) - middle
    return [
        Candidate(
            item_id=hit.item_id,
            strength=min(1.0, hit.similarity),
            nearness=(hit.similarity - middle) / (best or 1.0),
        )
        for hit in hits
        if hit.similarity >= least
    ]


def _embedded(item: Item) -> str:
    return f"{item.title}\n{item.summary}\n{item.body}"[:_MAX_EMBEDDED_CHARS]
