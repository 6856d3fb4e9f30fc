"""Asks memU's package, apart from what writes into its file: neither waits for the other.

The question's vector is fetched on the loop, where it can be cancelled; what blocks runs in a thread of
its own, which whoever asks can leave behind. One that was left behind goes on by itself with what it was
at, which is of use to the next question; until it is done memU is not asked again.
"""

import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from memory.backends.memu_embeddings import EmbeddingService
from memory.backends.memu_lines import NearLines
from memory.backends.memu_package import Memu, at_the_edge, driven, open_blocking
from memory.outbox.backend import BackendUnavailable

_BUSY: Final = "memU is still at an earlier question."


class _Given:
    """Gives memU the vector that is there already."""

    def __init__(self) -> None:
        self.vector: list[float] = []

    async def embed(self, inputs: list[str]) -> tuple[list[list[float]], None]:
        return [self.vector for _ in inputs], None


class MemuReading:
    """memU for questions. Close it."""

    def __init__(self, file: Path, embeddings: EmbeddingService) -> None:
        self._embeddings = embeddings
        self._lines = NearLines(file)
        self._given = _Given()
        self._memu: Memu = None
        self._limiter = anyio.CapacityLimiter(1)
        self._is_asked = threading.Lock()
        """The limiter knows nothing of a thread that was left behind."""

    async def names_near(self, query: str, owner_ids: Sequence[str]) -> list[str]:
        """Give the names of the owners' files that are nearest to a question, the nearest first.

        Raises:
            BackendUnavailable: memU or the endpoint of vectors cannot be used.
            DeliveryRefused: the endpoint calls the question wrong.
        """
        (vector,) = await self._embeddings.vectors([query])
        return await anyio.to_thread.run_sync(
            partial(self._ask_blocking, query, vector, owner_ids),
            abandon_on_cancel=True,
            limiter=self._limiter,
        )

    async def close(self) -> None:
        """Stop a thread that was left behind, and close memU's file; idempotent."""
        self._lines.stop()
        await anyio.to_thread.run_sync(self._close_blocking)

    def _ask_blocking(self, query: str, vector: list[float], owner_ids: Sequence[str]) -> list[str]:
        if not self._is_asked.acquire(blocking=False):
            raise BackendUnavailable(_BUSY)
        try:
            with at_the_edge():
                if self._memu is None:
                    self._memu = open_blocking(
                        self._given, progressive_retrieve_config={"resource": {"enabled": False}}
                    )
                    self._memu.database = self._lines
                self._given.vector = vector
                self._lines.turn_to(vector, owner_ids)
                where = {"user_id__in": list(owner_ids)}
                found = driven(self._memu.progressive_retrieve(query, where=where))
                return list(dict.fromkeys(str(one["name"]) for one in found["files"]))
        finally:
            self._is_asked.release()

    def _close_blocking(self) -> None:
        with self._is_asked:
            self._memu = None
            self._lines.close()
