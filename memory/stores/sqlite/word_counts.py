"""Which rows of one owner's have a word, and how many these are.

Only what the searching owner may read is counted: what others remember changes no answer. A common word
costs most to count, is asked most often and changes least, so it is counted only now and then; a number
that is a little out of date makes no wrong answer.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

COMMON: Final = 4000
"""From so many rows on a word is common."""
MAX_COUNTED: Final = 10_001
"""A word is counted up to so many rows; one with more counts as having them all."""
_USES: Final = 500
"""So often the number of a common word is given before it is counted anew."""
_LEAST_REMEMBERED: Final = 500
"""A word in fewer rows is counted each time: that costs little."""
_USES_A_ROW: Final = _USES / COMMON
"""A word that is not common is counted anew the sooner the rarer it is: a few rows more would tell there."""
_MAX_REMEMBERED: Final = 20_000


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that have a word."""

    count: int
    seqs: Sequence[int] | None
    """None where they were not read, their number being remembered, or are more than are counted."""


class WordCounts:
    """Reads and counts rows; safe to be used by several threads at once."""

    def __init__(self) -> None:
        self._remembered: dict[str, tuple[int, int]] = {}

    def rows_blocking(self, expression: str, read: Callable[[], Sequence[int]]) -> Rows:
        """Give the rows that an expression of the index's language finds, or only how many they are.

        They are read, `MAX_COUNTED` at most, where their number is not remembered.
        """
        known = self._take(expression)
        if known is not None:
            return Rows(known, None)
        found = read()
        if len(found) >= _LEAST_REMEMBERED:
            self._remember(expression, len(found))
        return Rows(len(found), found if len(found) < MAX_COUNTED else None)

    def total_blocking(self, connection: sqlite3.Connection, expression: str) -> int:
        """Count all rows that an expression finds, however many."""
        known = self._take(expression)
        if known is not None:
            return known
        row = connection.execute(
            "SELECT count(*) FROM item_words WHERE item_words MATCH ?", (expression,)
        ).fetchone()
        if int(row[0]) >= COMMON:
            self._remember(expression, int(row[0]))
        return int(row[0])

    def _take(self, expression: str) -> int | None:
        count, uses = self._remembered.get(expression, (0, 0))
        if uses == 0:
            return None
        self._remembered[expression] = (count, uses - 1)
        return count

    def _remember(self, expression: str, count: int) -> None:
        if len(self._remembered) >= _MAX_REMEMBERED:
            self._remembered.clear()
        self._remembered[expression] = (
            count,
            min(_USES, int(count * _USES_A_ROW)) if count < COMMON else _USES,
        )


def read_rows_blocking(
    connection: sqlite3.Connection, expression: str, *, count: int = 0
) -> Sequence[int]:
    """Give the rows that an expression finds, as many as are counted.

    Where `count` says that there are more, the newest ones, which takes twice as long; else those that
    come first in the index. They come as one value: taken one by one each would cost twice as much, and
    other threads would be let in between any two.
    """
    order = " ORDER BY rowid DESC" if count >= MAX_COUNTED else ""
    row = connection.execute(
        "SELECT json_group_array(rowid) FROM (SELECT rowid FROM item_words"  # noqa: S608
        f" WHERE item_words MATCH ?{order} LIMIT ?)",
        (expression, MAX_COUNTED),
    ).fetchone()
    found: list[int] = json.loads(row[0])
    return found
