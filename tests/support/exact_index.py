"""A vector index in memory that compares every vector, the reference for others, and items to index."""

from collections.abc import Sequence

import anyio.lowlevel

from memory.embeddings.protocol import Vector
from memory.items.scope import Scope
from memory.items.store import NumberedItem
from memory.vectors.protocol import DimensionMismatch, IndexState, VectorEntry, VectorHit
from tests.support.recall import make_item


class ExactVectorIndex:
    """Nearest neighbours by looking at all."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._entries: dict[str, VectorEntry] = {}

    async def put(self, entries: Sequence[VectorEntry]) -> None:
        for entry in entries:
            self._check(entry.vector)
        self._entries |= {entry.item_id: entry for entry in entries}

    async def remove(self, item_ids: Sequence[str]) -> None:
        gone = set(item_ids)
        self._entries = {key: entry for key, entry in self._entries.items() if key not in gone}

    async def nearest(
        self, vector: Vector, owner_ids: Sequence[str], *, limit: int
    ) -> Sequence[VectorHit]:
        self._check(vector)
        hits = [
            VectorHit(item_id=entry.item_id, similarity=_cosine(vector, entry.vector))
            for entry in self._entries.values()
            if entry.owner_id in owner_ids
        ]
        return sorted(hits, key=lambda hit: (-hit.similarity, hit.item_id))[:limit]

    async def count(self) -> int:
        return len(self._entries)

    async def missing(self, item_ids: Sequence[str]) -> set[str]:
        return set(item_ids) - self._entries.keys()

    async def clear(self) -> None:
        self._entries = {}

    async def close(self) -> None:
        """Nothing is open."""

    def _check(self, vector: Vector) -> None:
        if len(vector) != self._dimension:
            raise DimensionMismatch(
                f"A vector has {len(vector)} numbers, the index {self._dimension}."
            )


def _cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of two vectors of unit length; of a zero vector 0."""
    return sum(a * b for a, b in zip(one, other, strict=True))


ADA = Scope(owner_id="ada")


class Rows:
    """The items of Ada that are stored, and the state that is written down."""

    def __init__(self, *texts: str) -> None:
        self.items = {
            n: make_item(f"epi_{n}", text, scope=ADA) for n, text in enumerate(texts, start=1)
        }
        self.state: IndexState | None = None
        self.states: list[IndexState] = []
        self.read_from: list[int] = []

    async def after(self, seq: int, limit: int) -> list[NumberedItem]:
        self.read_from.append(seq)
        found = [NumberedItem(seq=n, item=item) for n, item in self.items.items() if n > seq]
        return found[:limit]

    async def get(self) -> IndexState | None:
        return self.state

    async def put(self, state: IndexState) -> None:
        self.state = state
        self.states.append(state)

    async def expected_count(self, backend: str) -> int:
        return len(self.items)


async def sound() -> bool:
    await anyio.lowlevel.checkpoint()
    return True
