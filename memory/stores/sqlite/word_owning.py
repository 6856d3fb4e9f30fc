"""Which rows a search may read, where these are a good part of all: remembered, so that the index need not tell.

To have the index leave out the rows of others costs more than to find a word, for it goes through all of the
owner's rows beside the word's. Where most of what has a word is the owner's anyway, it is quicker to take all
that has it and leave the others' out here. An owner who has little among much of others' is asked for in the
index as ever.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memory.items import ItemKind

LEAST_ROWS: Final = 2000
"""Of fewer the index is asked as quickly."""
_LEAST_SHARE: Final = 4
"""One row of so many is the owner's. It bounds what is remembered, too: no more than four owners have that."""


@dataclass(frozen=True, slots=True)
class OwnRows:
    """The rows of some owners and kinds, as they were when it was made."""

    marks: bytes
    """A byte for each number up to the last one of theirs: 1 where it is theirs."""

    def among(self, seqs: Sequence[int]) -> list[int]:
        """Give those of some rows that are theirs, in the same order."""
        marks, known = self.marks, len(self.marks)
        return [one for one in seqs if one < known and marks[one]]


class Owning:
    """Remembers whose rows are whose; safe to be used by several threads at once.

    A row's owner and kind never change and its number is never given twice. So what is known stays right, and
    only what was written since is looked up: each search knows all that was there when it began.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...]], OwnRows] = {}

    def rows_blocking(
        self,
        connection: sqlite3.Connection,
        owners: Sequence[str],
        kinds: Sequence[ItemKind],
        total: int,
    ) -> OwnRows | None:
        """Give the owners' rows of the kinds, some `total`; None: they are too few to be worth it."""
        key = (tuple(owners), tuple(kinds))
        if total < LEAST_ROWS or total * _LEAST_SHARE < _last_blocking(connection):
            self._known.pop(key, None)
            return None
        known = self._known.get(key, OwnRows(b""))
        new = _written_blocking(connection, owners, kinds, len(known.marks))
        if new:
            marks = bytearray(known.marks).ljust(max(new) + 1, b"\0")
            for one in new:
                marks[one] = 1
            known = OwnRows(bytes(marks))
        self._known[key] = known
        return known


def _last_blocking(connection: sqlite3.Connection) -> int:
    last = connection.execute("SELECT max(seq) FROM items").fetchone()[0]
    return 0 if last is None else int(last)


def _written_blocking(
    connection: sqlite3.Connection, owners: Sequence[str], kinds: Sequence[ItemKind], since: int
) -> list[int]:
    """Give the rows of the owners and kinds from a number on."""
    row = connection.execute(
        "SELECT json_group_array(seq) FROM items INDEXED BY items_by_kind"  # noqa: S608  placeholders
        f" WHERE owner_id IN ({', '.join('?' * len(owners))})"
        f" AND kind IN ({', '.join('?' * len(kinds))}) AND seq >= ?",
        (*owners, *kinds, since),
    ).fetchone()
    found: list[int] = json.loads(row[0])
    return found
