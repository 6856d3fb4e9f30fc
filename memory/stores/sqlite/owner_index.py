"""What searches remember of the index: how many rows have a term, and which rows an owner has.

Only rows that the searching owner may read are counted, so that what others remember changes no
answer.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from memory.items.item import ItemKind
from memory.stores.database import Connection, engine_of
from memory.stores.sqlite.fulltext_index import word_index_of
from memory.stores.sqlite.statements import placeholders
from memory.stores.sqlite.word_index import Rows

COMMON: Final = 4000
"""From so many rows on a term is common."""
MAX_RANKED: Final = 3000
"""Rows that one search ranks at most, but for a single word that alone has more."""
MAX_COUNTED: Final = 10_001
"""A term is counted up to so many rows; one with more counts as being in all of them."""
_USES: Final = 500
"""How often the count of a common term is used before it is counted again."""
_LEAST_REMEMBERED: Final = 500
"""A term in fewer rows is counted each time, which is cheap."""
_USES_A_ROW: Final = _USES / COMMON
"""A term that is not common is counted again the sooner the rarer it is."""
_MAX_REMEMBERED: Final = 20_000
LEAST_ROWS: Final = 2000
"""An owner with fewer rows is looked up in the index as quickly."""
_LEAST_SHARE: Final = 4
"""An owner's rows are remembered if they are at least one row in four, so at most four owners'
are."""


def is_many(count: int) -> bool:
    """Return whether so many rows are not read, or not all of them."""
    return count >= MAX_COUNTED


class RowCounts:
    """Counts rows, and remembers the counts of common terms; safe for several threads.

    A common term costs most to count and changes least; a count a little out of date does no harm.
    """

    def __init__(self) -> None:
        self._remembered: dict[str, tuple[int, int]] = {}

    def known(self, expression: str) -> int | None:
        """Return the remembered count of the rows that match; None if they are to be counted."""
        count, uses = self._remembered.get(expression, (0, 0))
        if uses == 0:
            return None
        self._remembered[expression] = (count, uses - 1)
        return count

    def note(self, expression: str, count: int) -> None:
        """Remember how many rows match, unless they are few."""
        if count >= _LEAST_REMEMBERED:
            self._remember(expression, count)

    def counting_blocking(self, connection: Connection, expression: str) -> Callable[[], int]:
        """Count all rows that match, however many; what is returned waits for the number."""
        known = self.known(expression)
        if known is not None:
            return lambda: known
        counted = word_index_of(connection).counting_blocking(connection, expression)

        def total_blocking() -> int:
            count = counted()
            if count >= COMMON:
                self._remember(expression, count)
            return count

        return total_blocking

    def _remember(self, expression: str, count: int) -> None:
        if len(self._remembered) >= _MAX_REMEMBERED:
            self._remembered.clear()
        uses = _USES if count >= COMMON else int(count * _USES_A_ROW)
        self._remembered[expression] = (count, uses)


@dataclass(frozen=True, slots=True)
class OwnRows:
    """The rows of some owners and kinds, as they were when this was made."""

    marks: bytes
    """A byte for each row number up to the last of theirs: 1 if it is theirs."""
    others: int = 0
    """At least how many rows there are beside theirs."""

    def among(self, seqs: Sequence[int]) -> list[int]:
        """Return those of the rows that are theirs, in the same order."""
        marks, known = self.marks, len(self.marks)
        return [seq for seq in seqs if seq < known and marks[seq]]


class OwnerIndex:
    """Remembers the rows of owners who have a good part of all; safe for several threads.

    For them it is quicker to read all rows with a term and leave out those of others here than to
    intersect posting lists in the index. A row's owner and kind never change and its number is
    never used again, so only what was written since is read: each search knows all that was there
    when it began. On SQLite alone: elsewhere numbers are given before the commit, so that a lower
    one may come after a higher one.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...]], OwnRows] = {}

    def rows_blocking(
        self,
        connection: Connection,
        owners: Sequence[str],
        kinds: Sequence[ItemKind],
        total_blocking: Callable[[], int],
    ) -> OwnRows | None:
        """Return the owners' rows of the kinds, a total that is asked for if it is needed; None if
        they are too few, or in another engine than SQLite.
        """
        if engine_of(connection) != "sqlite":
            return None
        total = total_blocking()
        key = (tuple(owners), tuple(kinds))
        last = connection.execute("SELECT ifnull(max(seq), 0) FROM items").fetchone()[0]
        if total < LEAST_ROWS or total * _LEAST_SHARE < last:
            self._known.pop(key, None)
            return None
        known = self._known.get(key, OwnRows(b""))
        if last >= len(known.marks):
            since = len(known.marks)
            new = _written_blocking(connection, owners, kinds, since)
            marks = bytearray(known.marks).ljust(max(new, default=-1) + 1, b"\0")
            for seq in new:
                marks[seq] = 1
            others = known.others + _count_blocking(connection, since) - len(new)
            known = OwnRows(bytes(marks), others)
        self._known[key] = known
        return known


def _written_blocking(
    connection: Connection, owners: Sequence[str], kinds: Sequence[ItemKind], since: int
) -> list[int]:
    """Return the rows of the owners and kinds from a row number on."""
    row = connection.execute(
        "SELECT json_group_array(seq) FROM items INDEXED BY items_by_kind"  # noqa: S608  placeholders
        f" WHERE owner_id IN ({placeholders(owners)}) AND kind IN ({placeholders(kinds)})"
        " AND seq >= ?",
        (*owners, *kinds, since),
    ).fetchone()
    found: list[int] = json.loads(row[0])
    return found


def _count_blocking(connection: Connection, since: int) -> int:
    """Return how many rows there are from a row number on."""
    after = f" WHERE seq >= {since}" if since else ""  # all of them are counted in an index
    row = connection.execute(f"SELECT count(*) FROM items{after}").fetchone()  # noqa: S608
    return int(row[0])


def read_rows_blocking(connection: Connection, expression: str, *, count: int = 0) -> Sequence[int]:
    """Return the rows that match, `MAX_COUNTED` at most.

    If `count` says that there are more, the newest ones, which takes twice as long; else those that
    come first in the index.
    """
    index = word_index_of(connection)
    return index.rows_blocking(connection, expression, MAX_COUNTED, newest=is_many(count))


def look_up_blocking(connection: Connection, expressions: Sequence[str]) -> Sequence[Rows]:
    """Return the rows that match each of the expressions, counted to `MAX_COUNTED`; of those with
    more than is quick to read only how many they are.
    """
    index = word_index_of(connection)
    most = min(index.few, MAX_COUNTED - 1)
    return index.look_up_blocking(connection, expressions, most, MAX_COUNTED)


def read_each_blocking(
    connection: Connection, expressions: Sequence[str]
) -> Sequence[Sequence[int] | None]:
    """Return the rows that match each of the expressions; None in place of `MAX_COUNTED` and
    more.
    """
    index = word_index_of(connection)
    found = index.look_up_blocking(connection, expressions, MAX_COUNTED - 1, MAX_COUNTED)
    return [rows.seqs for rows in found]
