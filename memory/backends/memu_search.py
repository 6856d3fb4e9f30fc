"""Searches memU's file as its package does, beside what writes into it: neither waits for the other.

The package ranks the lines of its file by cosine and names the files of the nearest five. It reads all vectors
as JSON for each question, though, which takes seconds with some thousand lines and stops the event loop
meanwhile. Here the vectors stay in memory, and only lines that came or went are read before a question.

The question's vector is fetched on the loop; the search runs in a thread that a cancelled caller leaves
behind. Until that thread is done no other search begins.
"""

import json
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import nlargest
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

from memory.backends.memu_embeddings import EmbeddingService
from memory.backends.memu_package import translating_memu_errors
from memory.outbox.backend import BackendUnavailable

_NEAREST_LINES: Final = 5
"""As many as memU's package looks for."""
_CHUNK: Final = 50
_MOST_LINES: Final = 50_000
_MOST_NUMBERS: Final = 16 * 1024 * 1024
"""Of all owners together, four bytes each."""
_LOCKED_S: Final = 1.0
_TOO_MANY: Final = "memU holds more than can be looked through in time."
_STOPPED: Final = "memU is being closed."
_BUSY: Final = "memU is still at an earlier question."
_LINES: Final = "memu_recall_file_segments"
_FILES: Final = "memu_recall_files"
Array = Any
"""An array of numpy, which is installed with memU and not without it."""


@dataclass(slots=True)
class _OwnedLines:
    """An owner's lines with a unit vector each, by id; `known` also has those without a usable vector."""

    known: set[str] = field(default_factory=set)
    files: dict[str, str] = field(default_factory=dict)
    vectors: dict[str, Array] = field(default_factory=dict)
    numbers: int = 0
    """In all vectors together."""

    def add(self, line_id: str, file_id: str, vector: Array) -> None:
        self.files[line_id], self.vectors[line_id] = file_id, vector
        self.numbers += int(vector.size)

    def drop(self, gone: set[str]) -> None:
        self.known -= gone
        for line_id in gone & self.vectors.keys():
            del self.files[line_id]
            self.numbers -= int(self.vectors.pop(line_id).size)


class MemuSearch:
    """Searches memU's file. Close it."""

    def __init__(self, file: Path, embeddings: EmbeddingService) -> None:
        self._file = file
        self._embeddings = embeddings
        self._connection: sqlite3.Connection | None = None
        self._owned: dict[str, _OwnedLines] = {}
        self._limiter = anyio.CapacityLimiter(1)
        self._searching = threading.Lock()
        """Also held by a thread that was left behind, of which the limiter knows nothing."""
        self._is_stopped = threading.Event()

    async def names_near(self, query: str, owner_ids: Sequence[str]) -> list[str]:
        """Return the names of the owners' files that are nearest to a question, nearest first.

        Raises:
            BackendUnavailable: memU or the embeddings endpoint cannot be used.
            DeliveryRefused: the endpoint refuses the question.
        """
        (vector,) = await self._embeddings.vectors([query])
        return await anyio.to_thread.run_sync(
            partial(self._search_blocking, vector, owner_ids),
            abandon_on_cancel=True,
            limiter=self._limiter,
        )

    async def close(self) -> None:
        """Stop a thread that was left behind, and close memU's file; idempotent."""
        self._is_stopped.set()
        await anyio.to_thread.run_sync(self._close_blocking)

    def _close_blocking(self) -> None:
        with self._searching:
            connection, self._connection = self._connection, None
            self._owned.clear()
            if connection is not None:
                connection.close()

    def _search_blocking(self, vector: list[float], owner_ids: Sequence[str]) -> list[str]:
        if not self._searching.acquire(blocking=False):
            raise BackendUnavailable(_BUSY)
        try:
            with translating_memu_errors():
                return self._nearest_files(vector, owner_ids)
        finally:
            self._searching.release()

    def _nearest_files(self, vector: list[float], owner_ids: Sequence[str]) -> list[str]:
        if self._connection is None:
            if not self._file.exists():
                return []
            self._connection = sqlite3.connect(
                f"{self._file.absolute().as_uri()}?mode=ro",
                uri=True,
                timeout=_LOCKED_S,
                check_same_thread=False,
            )
        for owner_id in owner_ids:
            self._catch_up(self._connection, owner_id, owner_ids)
        asked = _unit(vector)
        scored = (
            (float(line @ asked), owned.files[line_id])
            for owned in map(self._owned.__getitem__, owner_ids)
            for line_id, line in owned.vectors.items()
            if line.size == asked.size  # a vector of another model cannot be compared
        )
        files = list(dict.fromkeys(file_id for _, file_id in nlargest(_NEAREST_LINES, scored)))
        rows = self._connection.execute(
            f"SELECT id, name FROM {_FILES} WHERE id IN ({_marks(files)})",  # noqa: S608  names of our own
            files,
        ).fetchall()
        names = dict(rows)
        return [str(names[file_id]) for file_id in files if file_id in names]

    def _catch_up(
        self, connection: sqlite3.Connection, owner_id: str, wanted: Sequence[str]
    ) -> None:
        """Read the owner's new lines and drop those that are gone."""
        owned = self._owned.setdefault(owner_id, _OwnedLines())
        rows = connection.execute(
            f"SELECT id FROM {_LINES} WHERE user_id = ? LIMIT ?",  # noqa: S608  a name of our own
            (owner_id, _MOST_LINES + 1),
        ).fetchall()
        if len(rows) > _MOST_LINES:
            raise BackendUnavailable(_TOO_MANY)
        present = {row[0] for row in rows}
        owned.drop(owned.known - present)
        new = sorted(present - owned.known)
        for start in range(0, len(new), _CHUNK):
            if self._is_stopped.is_set():
                raise BackendUnavailable(_STOPPED)
            ids = new[start : start + _CHUNK]
            for line_id, file_id, vector in _read(connection, ids):
                owned.add(line_id, file_id, vector)
            owned.known.update(ids)
            self._make_room(wanted)

    def _make_room(self, wanted: Sequence[str]) -> None:
        """Drop the lines of other owners if there are too many numbers."""
        if self._numbers() <= _MOST_NUMBERS:
            return
        self._owned = {owner: lines for owner, lines in self._owned.items() if owner in wanted}
        if self._numbers() > _MOST_NUMBERS:
            self._owned.clear()
            raise BackendUnavailable(_TOO_MANY)

    def _numbers(self) -> int:
        return sum(lines.numbers for lines in self._owned.values())


def _read(connection: sqlite3.Connection, ids: Sequence[str]) -> list[tuple[str, str, Array]]:
    """Return the id, file and unit vector of those lines that have a vector."""
    rows = connection.execute(
        f"SELECT id, recall_file_id, embedding FROM {_LINES} WHERE id IN ({_marks(ids)})",  # noqa: S608  a name of our own
        ids,
    ).fetchall()
    vectors = ((line_id, file_id, json.loads(text or "null")) for line_id, file_id, text in rows)
    return [(line_id, file_id, _unit(vector)) for line_id, file_id, vector in vectors if vector]


def _unit(vector: Sequence[float]) -> Array:
    import numpy as np  # noqa: PLC0415  comes with memU, which need not be installed

    made = np.array(vector, dtype=np.float32)
    length = np.linalg.norm(made)
    return made / length if length else made


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
