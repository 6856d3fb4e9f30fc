"""Which rows of one owner's have a word, and how many these are.

Only what the searching owner may read is counted: what others remember changes no answer. A common word
costs most to count, is asked most often and changes least, so it is counted only now and then; a number
that is a little out of date makes no wrong answer.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

COMMON: Final = 4000
"""From so many rows on a word is common."""
MAX_COUNTED: Final = 10_001
"""A word is counted up to so many rows; one with more counts as having them all."""
_USES: Final = 500
"""So often a remembered number is given before it is counted anew."""
_MAX_REMEMBERED: Final = 20_000


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that have a word."""

    count: int
    seqs: Sequence[int] | None
    """None where the word is known to be common: its rows were not read."""


class WordCounts:
    """Reads and counts rows; safe to be used by several threads at once."""

    def __init__(self) -> None:
        self._remembered: dict[str, tuple[int, int]] = {}

    def rows_blocking(self, connection: sqlite3.Connection, expression: str) -> Rows:
        """Give the rows that an expression of the index's language finds, or only how many they are."""
        known = self._take(expression)
        if known is not None:
            return Rows(known, None)
        some = connection.execute(  # in the index's own order, which costs half
            "SELECT rowid FROM item_words WHERE item_words MATCH ? LIMIT ?", (expression, COMMON)
        ).fetchall()
        if len(some) < COMMON:
            return Rows(len(some), [row[0] for row in some])
        row = connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM item_words WHERE item_words MATCH ? LIMIT ?)",
            (expression, MAX_COUNTED),
        ).fetchone()
        self._remember(expression, int(row[0]))
        return Rows(int(row[0]), None)

    def total_blocking(self, connection: sqlite3.Connection, expression: str) -> int:
        """Count all rows that an expression finds, however many."""
        known = self._take(expression)
        if known is not None:
            return known
        row = connection.execute(
            "SELECT count(*) FROM item_words WHERE item_words MATCH ?", (expression,)
        ).fetchone()
        self._remember(expression, int(row[0]))
        return int(row[0])

    def _take(self, expression: str) -> int | None:
        count, uses = self._remembered.get(expression, (0, 0))
        if uses == 0:
            return None
        self._remembered[expression] = (count, uses - 1)
        return count

    def _remember(self, expression: str, count: int) -> None:
        if count < COMMON:
            return
        if len(self._remembered) >= _MAX_REMEMBERED:
            self._remembered.clear()
        self._remembered[expression] = (count, _USES)


def read_rows_blocking(
    connection: sqlite3.Connection, expression: str, *, count: int = 0
) -> Sequence[int]:
    """Give the rows that an expression finds, as many as are counted.

    Where `count` says that there are more, the newest ones, which takes twice as long.
    """
    order = " ORDER BY rowid DESC" if count >= MAX_COUNTED else ""
    rows = connection.execute(
        f"SELECT rowid FROM item_words WHERE item_words MATCH ?{order} LIMIT ?",  # noqa: S608
        (expression, MAX_COUNTED),
    )
    return [row[0] for row in rows]
