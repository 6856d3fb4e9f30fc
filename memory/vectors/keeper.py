"""Keeps the vector index: a place of delivery, a retriever of the search, and what mends it.

The database is the truth. An index that is missing, damaged, made by another model or short of items is
made anew out of it in the background; until then the search goes on by words alone and says so. While it
is made anew, what is written meanwhile comes by the outbox; both take turns, so nothing that was
forgotten comes back.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal, Protocol

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from memory.embeddings.protocol import Embedder
from memory.errors import StoreUnavailable
from memory.items import Item
from memory.itemstore import NumberedItem
from memory.outbox.backend import BackendHealth, BackendUnavailable
from memory.outbox.delivery import Link
from memory.recall.retrievers import Candidate, Question, RetrieverAnswer, RetrieverName
from memory.vectors.protocol import (
    DimensionMismatch,
    IndexUnavailable,
    VectorEntry,
    VectorIndex,
)
from memory.vectors.state import IndexState, IndexStateStore

_log = logging.getLogger(__name__)

BACKEND: Final = "vectors"
KeeperState = Literal["rebuilding", "ok", "failing"]

_REBUILD_BATCH: Final = 50
_RETRY_S: Final = 30.0
_MAX_EMBEDDED_CHARS: Final = 4000
"""Of an item its title, summary and the beginning of its text stand for it."""
_MAX_QUESTION_CHARS: Final = 2000


class Source(Protocol):
    """Where the items are."""

    async def after(self, seq: int, limit: int) -> list[NumberedItem]:
        """Give items in the order of writing, those after `seq`."""
        ...


class VectorKeeper:
    """The vector index and all that concerns it. `run` it in a task group; close it afterwards."""

    name = BACKEND

    def __init__(
        self,
        index: VectorIndex,
        embedder: Embedder,
        source: Source,
        states: IndexStateStore,
        *,
        is_sound: Callable[[], Awaitable[bool]],
        least_similarity: float,
    ) -> None:
        self._index = index
        self._embedder = embedder
        self._source = source
        self._states = states
        self._is_sound = is_sound
        self._least_similarity = least_similarity
        self._state: KeeperState = "rebuilding"
        self._detail: str | None = "It is being opened."
        self._broken = anyio.Event()
        self._settled = anyio.Event()
        self._turn = anyio.Lock()
        self._embedding = anyio.CapacityLimiter(1)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Open the index, mend it, and mend it again whenever it breaks, until cancelled."""
        task_status.started()
        while True:
            self._broken = anyio.Event()
            try:
                await self._make_whole()
            except (IndexUnavailable, DimensionMismatch, StoreUnavailable) as exc:
                self._set("failing", str(exc))
                _log.warning("vector_index_not_made", exc_info=True)
                with anyio.move_on_after(_RETRY_S):
                    await self._broken.wait()
                continue
            self._set("ok", None)
            await self._broken.wait()

    async def wait_settled(self) -> None:
        """Return when the index is whole, or is known not to be."""
        await self._settled.wait()

    def rebuild(self) -> None:
        """Have the index looked at, and made anew where it is not whole."""
        self._set("rebuilding", "It is being made anew.")
        self._broken.set()

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        """Find what is near in meaning."""
        if self._state == "rebuilding":
            is_missed = bool(await self._source.after(0, 1))  # nothing is, where nothing is stored
            return RetrieverAnswer(degraded=("vector_rebuilding",) if is_missed else ())
        if self._state == "failing":
            return RetrieverAnswer(degraded=("vector_error",))
        vector = (await self._embed([question.text[-_MAX_QUESTION_CHARS:]]))[0]
        if not any(vector):
            return RetrieverAnswer()
        try:
            hits = await self._index.nearest(vector, question.scope.readable_owners, limit=limit)
        except (IndexUnavailable, DimensionMismatch):
            self.rebuild()
            return RetrieverAnswer(degraded=("vector_error",))
        least = self._least_similarity
        near = [one for one in hits if one.similarity >= least]
        return RetrieverAnswer(
            candidates=[
                Candidate(
                    item_id=one.item_id,
                    strength=min(1.0, one.similarity),
                    nearness=min(1.0, (one.similarity - least) / (1.0 - least)),
                )
                for one in near
            ]
        )

    async def missing(self, item_ids: Sequence[str]) -> set[str]:
        """Tell which of these items the index lacks; none while it is not whole and at work."""
        if self._state != "ok":
            return set()
        try:
            return await self._index.missing(item_ids)
        except IndexUnavailable:
            self.rebuild()
            return set()

    # as a place of delivery

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:  # noqa: ARG002
        """Take an item, or its newer revision; the same twice is the same."""
        entries = await self._entries([item])
        await self._as_delivery(lambda: self._index.put(entries))
        return [
            Link(item_id=item.id, backend=BACKEND, remote_kind="vector", remote_id=one.key)
            for one in entries
        ]

    async def forget(
        self,
        item_id: str,
        links: Sequence[Link],  # noqa: ARG002
        idempotency_key: str,  # noqa: ARG002
    ) -> None:
        """Remove an item's vectors."""
        await self._as_delivery(lambda: self._index.remove([item_id]))

    async def check(self) -> BackendHealth:
        """Tell how the index is."""
        return BackendHealth(name=BACKEND, state=self._state, detail=self._detail)

    async def close(self) -> None:
        """Close the index."""
        await self._index.close()

    async def _as_delivery(self, work: Callable[[], Awaitable[None]]) -> None:
        async with self._turn:
            try:
                await work()
            except (IndexUnavailable, DimensionMismatch) as exc:
                if self._state == "ok":
                    self.rebuild()
                raise BackendUnavailable(str(exc)) from exc

    # making it whole

    async def _make_whole(self) -> None:
        state = await self._states.get()
        wanted = IndexState(model_id=self._embedder.model_id, dimension=self._embedder.dimension)
        made_so = state is not None and (
            (state.model_id, state.dimension) == (wanted.model_id, wanted.dimension)
        )
        if state is None or not made_so or not await self._is_usable(state):
            self._set("rebuilding", "It is being made anew.")
            async with self._turn:
                await self._states.put(wanted)
                await self._index.clear()
            state = wanted
        if not state.complete:
            self._set("rebuilding", "It is being made anew.")
            await self._build(state)

    async def _is_usable(self, state: IndexState) -> bool:
        """Whether what is there can be gone on with: sound, and not short of what it should hold."""
        if not await self._is_sound():
            return False
        try:
            count = await self._index.count()
        except (IndexUnavailable, DimensionMismatch):
            return False
        return not state.complete or count >= await self._states.expected_count(BACKEND)

    async def _build(self, state: IndexState) -> None:
        """Add everything that is stored, a batch at a time, and write down how far it came."""
        built_to = state.built_to
        while True:
            async with self._turn:
                some = await self._source.after(built_to, _REBUILD_BATCH)
                if some:
                    await self._index.put(await self._entries([one.item for one in some]))
                    built_to = some[-1].seq
                await self._states.put(
                    IndexState(
                        model_id=state.model_id,
                        dimension=state.dimension,
                        built_to=built_to,
                        complete=not some,
                    )
                )
            if not some:
                return

    async def _entries(self, items: Sequence[Item]) -> list[VectorEntry]:
        vectors = await self._embed([_embedded(one) for one in items])
        return [
            VectorEntry(
                key=one.id,
                item_id=one.id,
                owner_id=one.scope.owner_id,
                vector=vector if any(vector) else self._wordless,
            )
            for one, vector in zip(items, vectors, strict=True)
        ]

    @property
    def _wordless(self) -> list[float]:
        """Stand in for an item without words: it is counted, and no question has this direction."""
        return [1.0, *[0.0] * (self._embedder.dimension - 1)]

    async def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        return await anyio.to_thread.run_sync(
            self._embedder.embed_blocking, texts, limiter=self._embedding, abandon_on_cancel=True
        )

    def _set(self, state: KeeperState, detail: str | None) -> None:
        self._state, self._detail = state, detail
        if state != "rebuilding":
            self._settled.set()
        elif self._settled.is_set():
            self._settled = anyio.Event()


class VectorRetriever:
    """The keeper as a retriever of the search."""

    name: RetrieverName = "vector"

    def __init__(self, keeper: VectorKeeper) -> None:
        self._keeper = keeper

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        """Find what is near in meaning."""
        return await self._keeper.find(question, limit=limit)


def _embedded(item: Item) -> str:
    return f"{item.title}\n{item.summary}\n{item.body}"[:_MAX_EMBEDDED_CHARS]
