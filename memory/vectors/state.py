"""What is written down of the vector index: by which model, and how far it is built."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """How far an index is."""

    model_id: str
    dimension: int
    built_to: int = 0
    """Items up to this place in the order of writing are in it."""
    complete: bool = False


class IndexStateStore(Protocol):
    """Where that is kept."""

    async def get(self) -> IndexState | None:
        """Give it; None: there never was an index."""
        ...

    async def put(self, state: IndexState) -> None:
        """Write it down."""
        ...

    async def expected_count(self, backend: str) -> int:
        """Tell how many items an index that is complete holds at least."""
        ...
