"""What finds the nearest vectors: an index that can be rebuilt from the database at any time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.embeddings.protocol import Vector


class IndexUnavailable(Exception):
    """The index cannot be read or written just now; the text is one sentence for people."""


class DimensionMismatch(Exception):
    """The index holds vectors of another model or dimension; it has to be rebuilt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorEntry:
    """One vector and whose it is; `key` is unique: an item's id, or one with a section's name."""

    key: str
    item_id: str
    owner_id: str
    vector: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorHit:
    """One near vector; `similarity` is the cosine, -1 to 1."""

    key: str
    item_id: str
    similarity: float


class VectorIndex(Protocol):
    """Nearest neighbours by cosine. All calls may be cancelled; what was begun ends by itself."""

    async def put(self, entries: Sequence[VectorEntry]) -> None:
        """Add entries or replace those of the same key; all of them or none.

        Raises:
            IndexUnavailable: nothing is known to be written; the same call may be made again.
            DimensionMismatch: a vector has another dimension than the index.
        """
        ...

    async def remove(self, item_ids: Sequence[str]) -> None:
        """Remove all entries of these items; those that are not there are fine.

        Raises:
            IndexUnavailable: the same call may be made again.
        """
        ...

    async def nearest(
        self, vector: Vector, owner_ids: Sequence[str], *, limit: int
    ) -> Sequence[VectorHit]:
        """Give the owners' entries that are nearest, nearest first.

        Raises:
            IndexUnavailable: it cannot be read.
            DimensionMismatch: the query has another dimension than the index.
        """
        ...

    async def count(self) -> int:
        """Tell how many entries it holds.

        Raises:
            IndexUnavailable: it cannot be read.
        """
        ...

    async def missing(self, item_ids: Sequence[str]) -> set[str]:
        """Tell which of these items have no entry at all.

        Raises:
            IndexUnavailable: it cannot be read.
        """
        ...

    async def clear(self) -> None:
        """Throw all entries away, and with them what was wrong with the index.

        Raises:
            IndexUnavailable: it cannot be made anew.
        """
        ...

    async def close(self) -> None:
        """Close it; idempotent."""
        ...
