"""Chroma, embedded: vectors only, made by us, in a directory that can be thrown away at any time.

Everything of Chroma's runs in one worker thread: it is not made for several, and it blocks. Batches are
small, because a long write holds the interpreter. Conditions (`where`) are slow there, so more is asked for
than is wanted and looked through afterwards. It is never asked to make vectors itself, which would fetch a
model from the network.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread

from memory.embeddings.protocol import Vector
from memory.vectors.protocol import DimensionMismatch, IndexUnavailable, VectorEntry, VectorHit

T = TypeVar("T")

BATCH: Final = 50
_OVER: Final = 4
_MOST_ASKED: Final = 1000


class ChromaVectorIndex:
    """Nearest neighbours from Chroma. Opened when it is first used."""

    def __init__(self, directory: Path, *, model_id: str, dimension: int) -> None:
        self._directory = directory
        self._name = f"{model_id}-{dimension}"
        self._dimension = dimension
        self._limiter = anyio.CapacityLimiter(1)
        self._client: Any = None
        self._collection: Any = None

    async def put(self, entries: Sequence[VectorEntry]) -> None:
        """Add entries or replace those of the same key."""
        for one in entries:
            self._check(one.vector)
        for start in range(0, len(entries), BATCH):
            await self._in_thread(partial(self._put_blocking, entries[start : start + BATCH]))

    async def remove(self, item_ids: Sequence[str]) -> None:
        """Remove all entries of these items."""
        if item_ids:
            await self._in_thread(partial(self._remove_blocking, list(item_ids)))

    async def nearest(
        self, vector: Vector, owner_ids: Sequence[str], *, limit: int
    ) -> Sequence[VectorHit]:
        """Give the owners' entries that are nearest, nearest first.

        Where others' entries are in the way, more is asked for, up to a thousand.
        """
        self._check(vector)
        return await self._in_thread(
            partial(self._nearest_blocking, vector, frozenset(owner_ids), limit)
        )

    async def count(self) -> int:
        """Tell how many entries it holds."""
        return await self._in_thread(lambda: int(self._open_blocking().count()))

    async def clear(self) -> None:
        """Throw the whole directory away and begin anew."""
        await self._in_thread(self._clear_blocking)

    async def close(self) -> None:
        """Close it; idempotent."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._close_blocking, limiter=self._limiter)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run in the one thread; who stops waiting leaves the work to end by itself."""
        return await anyio.to_thread.run_sync(
            partial(_translated, work), limiter=self._limiter, abandon_on_cancel=True
        )

    def _check(self, vector: Vector) -> None:
        if len(vector) != self._dimension:
            raise DimensionMismatch(
                f"A vector has {len(vector)} numbers, the index {self._dimension}."
            )

    def _open_blocking(self) -> Any:
        if self._collection is not None and not self._directory.exists():
            self._close_blocking()
            raise IndexUnavailable("The directory of the vector index is gone.")
        if self._collection is None:
            import chromadb  # noqa: PLC0415  takes most of a second, which only this thread waits for
            from chromadb.config import Settings  # noqa: PLC0415

            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._client = chromadb.PersistentClient(
                str(self._directory), settings=Settings(anonymized_telemetry=False)
            )
            self._collection = self._client.get_or_create_collection(
                self._name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
            )
        return self._collection

    def _put_blocking(self, entries: Sequence[VectorEntry]) -> None:
        latest = {one.key: one for one in entries}
        self._open_blocking().upsert(
            ids=list(latest),
            embeddings=[list(one.vector) for one in latest.values()],
            metadatas=[
                {"owner_id": one.owner_id, "item_id": one.item_id} for one in latest.values()
            ],
        )

    def _remove_blocking(self, item_ids: list[str]) -> None:
        collection = self._open_blocking()
        for start in range(0, len(item_ids), BATCH):
            collection.delete(where={"item_id": {"$in": item_ids[start : start + BATCH]}})

    def _nearest_blocking(
        self, vector: Vector, owner_ids: frozenset[str], limit: int
    ) -> list[VectorHit]:
        collection = self._open_blocking()
        total = int(collection.count())
        asked = min(total, limit * _OVER)
        while asked:
            hits = _hits(collection, vector, owner_ids, asked)
            if len(hits) >= limit or asked >= min(total, _MOST_ASKED):
                return hits[:limit]
            asked = min(total, _MOST_ASKED, asked * _OVER)
        return []

    def _clear_blocking(self) -> None:
        self._close_blocking()
        if self._directory.exists():
            shutil.rmtree(self._directory)
        self._open_blocking()

    def _close_blocking(self) -> None:
        client, self._client, self._collection = self._client, None, None
        if client is not None:
            with suppress(Exception):  # what is broken cannot be closed in order, either
                client.close()


def _hits(
    collection: Any, vector: Vector, owner_ids: frozenset[str], asked: int
) -> list[VectorHit]:
    answer = collection.query(
        query_embeddings=[list(vector)], n_results=asked, include=["distances", "metadatas"]
    )
    rows = zip(answer["ids"][0], answer["distances"][0], answer["metadatas"][0], strict=True)
    return [
        VectorHit(key=key, item_id=str(data["item_id"]), similarity=1.0 - float(distance))
        for key, distance, data in rows
        if data["owner_id"] in owner_ids
    ]


def _translated(work: Callable[[], T]) -> T:
    """Let nothing of Chroma's own errors out, nor of the files beneath: their texts name paths."""
    try:
        return work()
    except (IndexUnavailable, DimensionMismatch):
        raise
    except Exception as exc:
        raise IndexUnavailable("The vector index cannot be used.") from exc
    except BaseException as exc:  # its core panics with something that is no Exception
        if type(exc).__name__ != "PanicException":
            raise
        raise IndexUnavailable("The vector index is damaged.") from exc
