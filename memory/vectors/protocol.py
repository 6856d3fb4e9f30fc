"""A vector index, which can be rebuilt from the database at any time, and its state."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.embeddings.protocol import Vector


class IndexUnavailable(Exception):
    """The index cannot be used now; the text is one sentence for people."""


class DimensionMismatch(Exception):
    """The index holds vectors of another model or dimension; it has to be rebuilt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorEntry:
    """The vector of an item, and its owner."""

    item_id: str
    owner_id: str
    vector: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorHit:
    """One near item; `similarity` is the cosine, -1 to 1."""

    item_id: str
    similarity: float


class VectorIndex(Protocol):
    """Nearest neighbours by cosine. A cancelled call may still take effect.

    Every method may raise `IndexUnavailable`; the same call may then be made again.
    """

    async def put(self, entries: Sequence[VectorEntry]) -> None:
        """Add entries or replace those of the same item; all of them or none.

        Raise `DimensionMismatch` if a vector has another dimension than the index.
        """

    async def remove(self, item_ids: Sequence[str]) -> None:
        """Remove the entries of these items; those that are not there are fine."""

    async def nearest(
        self, vector: Vector, owner_ids: Sequence[str], *, limit: int
    ) -> Sequence[VectorHit]:
        """Return the owners' entries that are nearest, nearest first.

        Raise `DimensionMismatch` if the query has another dimension than the index.
        """

    async def count(self) -> int:
        """Return how many entries it holds."""

    async def missing(self, item_ids: Sequence[str]) -> set[str]:
        """Return which of these items have no entry."""

    async def clear(self) -> None:
        """Delete all entries, and any damage with them."""

    async def close(self) -> None:
        """Close it; idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """Which model made an index, and how far it is built."""

    model_id: str
    dimension: int
    built_to: int = 0
    """The index holds the items up to this place in the order of writing."""
    complete: bool = False


class IndexStateStore(Protocol):
    """Stores the state of the index."""

    async def get(self) -> IndexState | None:
        """Return the state; None if there never was an index."""

    async def put(self, state: IndexState) -> None:
        """Store the state."""

    async def expected_count(self, backend: str) -> int:
        """Return how many items a complete index holds at least."""
