"""What memU's package looks through for an answer: the lines of its file, their vectors read once.

By itself the package reads all vectors of all lines as JSON for each question, and turns them into one
array in a single step: with some thousand lines that is seconds, in which the server's loop stands still
again and again. Here they are kept as numbers; what has come or gone is made up for before each question,
and memU is handed the lines that are near, which it ranks and rolls up as ever.

Blocks. Used by one thread at a time, but for `stop`.
"""

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from heapq import nlargest
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from memory.outbox.backend import BackendUnavailable

_CHUNK: Final = 50
_HANDED: Final = 50
"""Lines that memU is given; it looks for fewer."""
_MOST_LINES: Final = 50_000
_MOST_NUMBERS: Final = 16 * 1024 * 1024
"""Of all owners together, four bytes each."""
_LOCKED_S: Final = 1.0
_TOO_MANY: Final = "memU holds more than can be looked through in time."
_STOPPED: Final = "memU is being closed."
_LINES: Final = "memu_recall_file_segments"
_FILES: Final = "memu_recall_files"
Numbers = Any
"""An array of numpy's, which comes with memU and not without it."""


@dataclass(slots=True)
class _Block:
    """Some lines, with a unit vector each."""

    ids: list[str]
    files: list[str]
    vectors: Numbers

    def without(self, gone: set[str]) -> "_Block":
        kept = [place for place, one in enumerate(self.ids) if one not in gone]
        return _Block(
            [self.ids[one] for one in kept], [self.files[one] for one in kept], self.vectors[kept]
        )


@dataclass(slots=True)
class _Owned:
    """An owner's lines; also those that have no vector to be found by."""

    known: set[str] = field(default_factory=set)
    blocks: list[_Block] = field(default_factory=list)

    @property
    def numbers(self) -> int:
        return sum(int(one.vectors.size) for one in self.blocks)


@dataclass(frozen=True, slots=True)
class Line:
    """A line as memU looks at it."""

    id: str
    recall_file_id: str
    embedding: list[float]

    def model_dump(self, **_: object) -> dict[str, Any]:
        """Give what memU tells of it."""
        return {"id": self.id, "recall_file_id": self.recall_file_id}


@dataclass(frozen=True, slots=True)
class File:
    """A file as memU gives it back."""

    id: str
    name: str

    def model_dump(self, **_: object) -> dict[str, Any]:
        """Give what memU tells of it."""
        return {"id": self.id, "name": self.name}


class NearLines:
    """The lines near a question; in place of memU's own way to them. `close` it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._connection: sqlite3.Connection | None = None
        self._owned: dict[str, _Owned] = {}
        self._lines: list[Line] = []
        self._is_stopped = threading.Event()

    @property
    def recall_file_segment_repo(self) -> "NearLines":
        """Where memU looks for lines."""
        return self

    @property
    def recall_file_repo(self) -> "NearLines":
        """Where it looks for the files that they are of."""
        return self

    def turn_to(self, vector: Sequence[float], owner_ids: Sequence[str]) -> None:
        """Find the lines near a vector, of these owners.

        Raises:
            BackendUnavailable: there are too many to be kept.
            sqlite3.Error: memU's file cannot be read.
        """
        self._lines = []
        if self._connection is None:
            if not self._file.exists():
                return
            self._connection = _opened(self._file)
        for owner_id in owner_ids:
            self._catch_up(self._connection, owner_id, owner_ids)
        self._lines = list(self._nearest(vector, owner_ids))

    def list_segments(self, where: Mapping[str, Any]) -> list[Line]:
        """Give the lines that were turned to; memU asks for just their owners."""
        del where
        return self._lines

    def list_recall_files(self, where: Mapping[str, Any]) -> dict[str, File]:
        """Give the files that the lines are of."""
        del where
        ids = list(dict.fromkeys(one.recall_file_id for one in self._lines))
        if self._connection is None or not ids:
            return {}
        rows = self._connection.execute(
            f"SELECT id, name FROM {_FILES} WHERE id IN ({_marks(ids)})",  # noqa: S608  names of our own
            ids,
        ).fetchall()
        return {file_id: File(file_id, name) for file_id, name in rows}

    def stop(self) -> None:
        """Have whoever is reading lines just now stop soon; from any thread."""
        self._is_stopped.set()

    def close(self) -> None:
        """Close memU's file, and drop what is kept; idempotent."""
        connection, self._connection = self._connection, None
        self._owned.clear()
        self._lines = []
        if connection is not None:
            connection.close()

    def _catch_up(
        self, connection: sqlite3.Connection, owner_id: str, wanted: Sequence[str]
    ) -> None:
        owned = self._owned.setdefault(owner_id, _Owned())
        rows = connection.execute(
            f"SELECT id FROM {_LINES} WHERE user_id = ? LIMIT ?",  # noqa: S608  a name of our own
            (owner_id, _MOST_LINES + 1),
        ).fetchall()
        if len(rows) > _MOST_LINES:
            raise BackendUnavailable(_TOO_MANY)
        there = {row[0] for row in rows}
        gone = owned.known - there
        if gone:
            owned.known &= there
            owned.blocks = [one.without(gone) for one in owned.blocks]
            owned.blocks = [one for one in owned.blocks if one.ids]
        come = sorted(there - owned.known)
        for start in range(0, len(come), _CHUNK):
            if self._is_stopped.is_set():
                raise BackendUnavailable(_STOPPED)
            some = come[start : start + _CHUNK]
            owned.blocks += _read(connection, some)
            owned.known.update(some)
            self._make_room(wanted)

    def _make_room(self, wanted: Sequence[str]) -> None:
        if sum(one.numbers for one in self._owned.values()) <= _MOST_NUMBERS:
            return
        self._owned = {name: one for name, one in self._owned.items() if name in wanted}
        if sum(one.numbers for one in self._owned.values()) > _MOST_NUMBERS:
            self._owned.clear()
            raise BackendUnavailable(_TOO_MANY)

    def _nearest(self, vector: Sequence[float], owner_ids: Sequence[str]) -> Iterator[Line]:
        asked = _unit([vector])[0]
        scored = (
            (float(score), block, place)
            for name in owner_ids
            for block in self._owned[name].blocks
            if block.vectors.shape[1] == len(asked)  # one of another model says nothing here
            for place, score in enumerate(block.vectors @ asked)
        )
        for _, block, place in nlargest(_HANDED, scored, key=itemgetter(0)):
            yield Line(block.ids[place], block.files[place], block.vectors[place])


def _opened(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=_LOCKED_S, check_same_thread=False
    )


def _read(connection: sqlite3.Connection, ids: Sequence[str]) -> Iterator[_Block]:
    """Read some lines; each block's vectors are of one length."""
    with closing(
        connection.execute(
            f"SELECT id, recall_file_id, embedding FROM {_LINES} WHERE id IN ({_marks(ids)})",  # noqa: S608  a name of our own
            ids,
        )
    ) as cursor:
        rows = cursor.fetchall()
    by_length: dict[int, list[tuple[str, str, list[float]]]] = {}
    for line_id, file_id, text in rows:
        vector = json.loads(text) if text else None
        if vector:
            by_length.setdefault(len(vector), []).append((line_id, file_id, vector))
    for some in by_length.values():
        vectors = _unit([vector for _, _, vector in some])
        yield _Block([one for one, _, _ in some], [one for _, one, _ in some], vectors)


def _unit(vectors: Sequence[Sequence[float]]) -> Numbers:
    import numpy as np  # noqa: PLC0415  comes with memU, which need not be there

    made = np.array(vectors, dtype=np.float32)
    lengths = np.linalg.norm(made, axis=1, keepdims=True)
    return made / np.where(lengths == 0, 1, lengths)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
