"""Chroma, embedded, in a directory that can be deleted at any time; it stores vectors that are made
here.

Chroma blocks and does not support several threads, so all of it runs in one worker thread. Batches
are small, because a long write holds the interpreter. Conditions (`where`) are slow, so more
entries are requested than wanted and filtered afterwards. Chroma's own embedding is never used: it
would download a model.
"""

import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import sqrt
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
_LEAST_LENGTH: Final = 1e-9
_MAX_NAME_CHARS: Final = 200


class ChromaVectorIndex:
    """See `VectorIndex`. Opened when it is first used."""

    def __init__(self, directory: Path, *, model_id: str, dimension: int) -> None:
        self._directory = directory
        self._name = _collection_name(model_id, dimension)
        self._dimension = dimension
        self._limiter = anyio.CapacityLimiter(1)
        self._client: Any = None
        self._collection: Any = None

    async def put(self, entries: Sequence[VectorEntry]) -> None:
        for entry in entries:
            self._check(entry.vector)
        for start in range(0, len(entries), BATCH):
            await self._in_thread(partial(self._put_blocking, entries[start : start + BATCH]))

    async def remove(self, item_ids: Sequence[str]) -> None:
        if item_ids:
            await self._in_thread(partial(self._remove_blocking, list(item_ids)))

    async def nearest(
        self, vector: Vector, owner_ids: Sequence[str], *, limit: int
    ) -> Sequence[VectorHit]:
        self._check(vector)
        return await self._in_thread(
            partial(self._nearest_blocking, vector, frozenset(owner_ids), limit)
        )

    async def count(self) -> int:
        return await self._in_thread(lambda: int(self._open_blocking().count()))

    async def missing(self, item_ids: Sequence[str]) -> set[str]:
        if not item_ids:
            return set()
        return await self._in_thread(partial(self._missing_blocking, set(item_ids)))

    async def clear(self) -> None:
        await self._in_thread(self._clear_blocking)

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._close_blocking, limiter=self._limiter)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run in the one thread; if the caller is cancelled, the work ends by itself."""
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
        latest = {entry.item_id: entry for entry in entries}
        self._open_blocking().upsert(
            ids=list(latest),
            embeddings=[list(entry.vector) for entry in latest.values()],
            metadatas=[{"owner_id": entry.owner_id} for entry in latest.values()],
        )

    def _remove_blocking(self, item_ids: list[str]) -> None:
        collection = self._open_blocking()
        for start in range(0, len(item_ids), BATCH):
            collection.delete(ids=item_ids[start : start + BATCH])

    def _missing_blocking(self, item_ids: set[str]) -> set[str]:
        found = self._open_blocking().get(ids=sorted(item_ids), include=[])
        return item_ids - set(found["ids"])

    def _nearest_blocking(
        self, vector: Vector, owner_ids: frozenset[str], limit: int
    ) -> list[VectorHit]:
        collection = self._open_blocking()
        asked = limit  # enough where nobody else's are in the way
        while limit > 0:
            hits, seen = _hits(collection, vector, owner_ids, asked, limit)
            if len(hits) >= limit:
                return hits
            # counted only now: among many that takes longer than to find
            if seen < asked and seen >= int(collection.count()):
                return hits
            if asked >= _MOST_ASKED:
                return _compared_all(collection, vector, owner_ids)[:limit]
            asked = min(_MOST_ASKED, asked * _OVER)
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


def _collection_name(model_id: str, dimension: int) -> str:
    """Return a name that Chroma takes: a model's may be long and hold `/` and `:`."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", model_id)[:_MAX_NAME_CHARS].strip("._-")
    return f"{plain or 'model'}-{dimension}"


def _hits(
    collection: Any, vector: Vector, owner_ids: frozenset[str], asked: int, limit: int
) -> tuple[list[VectorHit], int]:
    """Return so many of the owners' nearest entries, and how many entries of all owners were found.

    Owners are looked up for as few entries as possible: it takes longer than the search.
    """
    answer = collection.query(
        query_embeddings=[list(vector)], n_results=asked, include=["distances"]
    )
    rows = list(zip(answer["ids"][0], answer["distances"][0], strict=True))
    hits: list[VectorHit] = []
    for start in range(0, len(rows), limit):
        part = rows[start : start + limit]
        known = collection.get(ids=[item_id for item_id, _ in part], include=["metadatas"])
        data = dict(zip(known["ids"], known["metadatas"], strict=True))
        hits += [
            VectorHit(item_id=item_id, similarity=1.0 - float(distance))
            for item_id, distance in part
            if item_id in data and data[item_id]["owner_id"] in owner_ids
        ]
        if len(hits) >= limit:
            break
    return hits[:limit], len(rows)


def _compared_all(collection: Any, vector: Vector, owner_ids: frozenset[str]) -> list[VectorHit]:
    """Compare all entries of owners who have few, a thousand at most.

    This also finds what the graph does not lead to: among many equal vectors it may cut one off.
    """
    answer = collection.get(
        where={"owner_id": {"$in": sorted(owner_ids)}},
        include=["embeddings"],
        limit=_MOST_ASKED,
    )
    if not answer["ids"]:
        return []
    theirs = answer["embeddings"]
    lengths = (theirs**2).sum(axis=1) ** 0.5 * sqrt(sum(number * number for number in vector))
    cosines = theirs.dot(vector) / lengths.clip(min=_LEAST_LENGTH)
    hits = [
        VectorHit(item_id=item_id, similarity=float(cosine))
        for item_id, cosine in zip(answer["ids"], cosines, strict=True)
    ]
    return sorted(hits, key=lambda hit: (-hit.similarity, hit.item_id))


def _translated(work: Callable[[], T]) -> T:
    """Raise only our errors: the texts of others name paths."""
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
