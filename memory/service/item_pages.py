"""Pages of items, latest first, read off the index of each readable owner."""

import heapq
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memory.cases.case_rows import read_case
from memory.cases.item import whole_item
from memory.clock import rfc3339
from memory.items.item import KINDS, Item, ItemKind
from memory.items.scope import Scope
from memory.items.store import ItemPage, ListedItem, UnknownCursor
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.items import COLUMNS, item_of
from memory.stores.sqlite.statements import placeholders

_Place = tuple[str, int]
"""Moment and row, which order the items; a hidden case has the negative row of the case."""
_BEFORE_ALL: Final[_Place] = ("~", 0)
_BATCH: Final = 200
"""Items that are read at once of an owner; most pages need no more."""
_CURSOR: Final = re.compile(r"(\d{4}-[0-9T:.\-]{1,24}Z)_(-?\d{1,18})")


class SqlItemPages:
    """Lists items page by page."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def page(
        self,
        scope: Scope,
        *,
        kinds: Sequence[ItemKind] = KINDS,
        words: str = "",
        limit: int,
        cursor: str | None = None,
    ) -> ItemPage:
        """Return the items that the scope covers and that contain every word, in any case.

        Cases that search does not show are listed too. What is written or forgotten between two
        pages makes no other item appear twice or go missing. Cancellation stops the search. Raise
        `UnknownCursor` if `cursor` was not returned by a page, `StoreUnavailable` if the store
        cannot be read.
        """
        wanted = tuple(dict.fromkeys(_plain(words).split()))
        after = _BEFORE_ALL if cursor is None else _place_of(cursor)
        return await self._database.read(_Reading(scope, kinds, wanted, limit, after).run_blocking)


@dataclass(frozen=True, slots=True)
class _Reading:
    scope: Scope
    kinds: Sequence[ItemKind]
    words: Sequence[str]
    limit: int
    after: _Place

    def run_blocking(self, connection: Connection) -> ItemPage:
        streams = [
            *(self._items(connection, owner_id) for owner_id in self.scope.readable_owners),
            iter(self._hidden_cases(connection) if "case" in self.kinds else ()),
        ]
        listed: list[ListedItem] = []
        last = self.after
        for place, item, why in heapq.merge(*streams, key=lambda found: found[0], reverse=True):
            if not self._fits(item):
                continue
            if len(listed) == self.limit:
                return ItemPage(items=listed, next_cursor=f"{last[0]}_{last[1]}")
            listed.append(ListedItem(item=item, why=self._told(why)))
            last = place
        return ItemPage(items=listed, next_cursor=None)

    def _items(self, connection: Connection, owner_id: str) -> Iterator[tuple[_Place, Item, str]]:
        after = self.after
        while True:
            rows = connection.execute(
                f"SELECT seq, {COLUMNS} FROM items INDEXED BY items_newest"  # noqa: S608  our own
                f" WHERE owner_id = ? AND kind IN ({placeholders(self.kinds)})"
                " AND (occurred_at, seq) < (?, ?) ORDER BY occurred_at DESC, seq DESC LIMIT ?",
                (owner_id, *self.kinds, *after, _BATCH),
            ).fetchall()
            for row in rows:
                after = row["occurred_at"], row["seq"]
                why = "remembered" if row["valid_until"] is None else "superseded"
                yield after, item_of(row), why
            if len(rows) < _BATCH:
                return

    def _hidden_cases(self, connection: Connection) -> list[tuple[_Place, Item, str]]:
        rows = connection.execute(
            "SELECT rowid AS id, value FROM cases WHERE owner_id = ? AND is_findable = 0",
            (self.scope.owner_id,),
        )
        cases = [(-row["id"], read_case(row["value"])) for row in rows]
        found = [
            ((rfc3339(case.created_at), row), whole_item(case), f"hidden: {case.lifecycle}")
            for row, case in cases
        ]
        return sorted((hit for hit in found if hit[0] < self.after), key=lambda hit: hit[0])[::-1]

    def _fits(self, item: Item) -> bool:
        if not self.scope.covers(item.scope):
            return False
        text = _plain("\n".join((item.title, item.summary, item.body, *item.tags)))
        return all(word in text for word in self.words)

    def _told(self, why: str) -> str:
        return f"{why}, contains {' and '.join(self.words)}" if self.words else why


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _place_of(cursor: str) -> _Place:
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise UnknownCursor(cursor)
    return found[1], int(found[2])
