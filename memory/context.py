"""The interface between a turn and memory.

The gateway asks before each run, within a deadline, and injects `ContextPack.text` beside the
prompt. Slow or broken parts of memory are named in `degraded` and never break the turn.
"""

from typing import Protocol

from memory.recall.query import ContextPack, QueryPack


class MemoryReader(Protocol):
    """Reads the context of a turn."""

    async def recall(self, query: QueryPack) -> ContextPack:
        """Return what fits the query. May be cancelled at the turn's deadline at any await."""
