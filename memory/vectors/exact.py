"""The reference: every vector is compared. In memory, gone with the process."""

from collections.abc import Sequence

from memory.embeddings.protocol import Vector
from memory.vectors.protocol import DimensionMismatch, VectorEntry, VectorHit


class ExactVectorIndex:
    """Nearest neighbours by looking at all."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._entries: dict[str, VectorEntry] = {}

    async def put(self, entries: Sequence[VectorEntry]) -> None:
        """Add entries or replace those of the same key; all of them or none."""
        for one in entries:
            self._check(one.vector)
        self._entries |= {one.key: one for one in entries}

    async def remove(self, item_ids: Sequence[str]) -> None:
        """Remove all entries of these items."""
        gone = set(item_ids)
        self._entries = {key: one for key, one in self._entries.items() if one.item_id not in gone}

    async def nearest(
        self, vector: Vector, owner_ids: Sequence[str], *, limit: int
    ) -> Sequence[VectorHit]:
        """Give the owners' entries that are nearest, nearest first; equal ones by their key."""
        self._check(vector)
        hits = [
            VectorHit(key=one.key, item_id=one.item_id, similarity=_cosine(vector, one.vector))
            for one in self._entries.values()
            if one.owner_id in owner_ids
        ]
        return sorted(hits, key=lambda one: (-one.similarity, one.key))[:limit]

    async def count(self) -> int:
        """Tell how many entries it holds."""
        return len(self._entries)

    async def missing(self, item_ids: Sequence[str]) -> set[str]:
        """Tell which of these items have no entry at all."""
        return set(item_ids) - {one.item_id for one in self._entries.values()}

    async def clear(self) -> None:
        """Throw all entries away."""
        self._entries = {}

    async def close(self) -> None:
        """Nothing is open."""

    def _check(self, vector: Vector) -> None:
        if len(vector) != self._dimension:
            raise DimensionMismatch(
                f"A vector has {len(vector)} numbers, the index {self._dimension}."
            )


def _cosine(one: Vector, other: Vector) -> float:
    """Give the cosine of two vectors of unit length; of a zero vector 0."""
    return sum(a * b for a, b in zip(one, other, strict=True))
