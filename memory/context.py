"""The seam between a turn and memory.

The gateway asks before each run, within a deadline, and injects `ContextPack.text` beside the
prompt, never into it. Memory never breaks a turn: what is slow or broken is named in `degraded`.
"""

from typing import Protocol

from memory.recall.query import ContextPack, QueryPack


class MemoryReader(Protocol):
    """Where a turn's context comes from."""

    async def recall(self, query: QueryPack) -> ContextPack:
        """Give what fits the query. May be cancelled at the turn's deadline at any await."""
        ...
