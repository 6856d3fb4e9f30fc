"""Items in SQLite: written within somebody's transaction, read and searched by anybody."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Final

from memory.items import KINDS, Item, ItemKind
from memory.itemstore import NumberedItem, WordHit
from memory.recall.question_words import QuestionWords
from memory.scope import Scope
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.item_rows import COLUMNS, UPSERT, item_of, values_of
from memory.stores.sqlite.item_words import (
    put_words_blocking,
    remove_words_blocking,
    tell_neighbours_blocking,
)
from memory.stores.sqlite.readers import Readers
from memory.stores.sqlite.word_counts import WordCounts
from memory.stores.sqlite.word_owning import Owning
from memory.stores.sqlite.word_search import WordSearch

_AT_ONCE: Final = 500


def put_item_blocking(connection: sqlite3.Connection, item: Item) -> None:
    """Write an item, or what it has become, with its words; an id stays its owner's and kind's."""
    before = _place_blocking(connection, item.id)
    written = connection.execute(UPSERT, values_of(item)).rowcount
    if written != 1:
        raise sqlite3.IntegrityError("the id belongs to another item")
    now = _place_blocking(connection, item.id)
    assert now is not None, "it was written"
    put_words_blocking(connection, now["seq"])
    if before is not None and tuple(before) != tuple(now):
        tell_neighbours_blocking(connection, before)


def delete_item_blocking(connection: sqlite3.Connection, item_id: str) -> bool:
    """Remove an item and its words; False: there was none."""
    row = _place_blocking(connection, item_id)
    if row is None:
        return False
    connection.execute("DELETE FROM items WHERE seq = ?", (row["seq"],))
    remove_words_blocking(connection, row["seq"])
    tell_neighbours_blocking(connection, row)
    return True


def _place_blocking(connection: sqlite3.Connection, item_id: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        "SELECT seq, owner_id, thread, position FROM items WHERE id = ?", (item_id,)
    ).fetchone()
    return row


class SqliteItemStore:
    """Items in the memory's database; `readers` are for searches, which may be given up."""

    def __init__(self, database: Database, readers: Readers) -> None:
        self._database = database
        self._readers = readers
        self._counts = WordCounts()
        self._owning = Owning()

    async def get(self, item_id: str, scope: Scope) -> Item | None:
        """Give an item, or None where there is none that the scope covers."""
        found = await self.get_many([item_id], scope)
        return found[0] if found else None

    async def get_many(self, item_ids: Sequence[str], scope: Scope) -> list[Item]:
        """Give those of the items that the scope covers, in the order of the ids."""
        wanted = [one for one in dict.fromkeys(item_ids) if _can_be_stored(one)]
        found: dict[str, Item] = {}
        for part in (wanted[n : n + _AT_ONCE] for n in range(0, len(wanted), _AT_ONCE)):
            items = await self._database.values(
                item_of,
                f"SELECT {COLUMNS} FROM items WHERE id IN ({', '.join('?' * len(part))})",  # noqa: S608
                part,
            )
            found |= {item.id: item for item in items}
        return [found[one] for one in wanted if one in found and scope.covers(found[one].scope)]

    async def current(self, item_id: str) -> Item | None:
        """Give an item as it stands now, whoever's it is: for deliveries; None: it is gone."""
        found = await self._database.values(
            item_of,
            f"SELECT {COLUMNS} FROM items WHERE id = ?",  # noqa: S608
            (item_id,),
        )
        return found[0] if found else None

    async def search(
        self, text: str, scope: Scope, *, kinds: Sequence[ItemKind] = KINDS, limit: int
    ) -> list[WordHit]:
        """Find the items that have words of `text`, best first; see `ItemStore.search`."""
        search = WordSearch(QuestionWords.of(text), scope, kinds, limit, self._counts, self._owning)
        rows = await self._readers.run(search.run_blocking)
        return [
            WordHit(
                item_id=one.item_id,
                score=one.score,
                coverage=one.coverage,
                is_about=one.is_about,
            )
            for one in rows
        ]

    async def newest(
        self, scope: Scope, *, kinds: Sequence[ItemKind] = KINDS, limit: int
    ) -> list[Item]:
        """Give the items that happened last, newest first."""
        labels = json.dumps(scope.wanted, ensure_ascii=False)
        if not _can_be_stored(labels):
            return []
        # one owner at a time: so each is read off the index in its order, however many there are
        one_owners = (
            f"SELECT * FROM (SELECT seq, {COLUMNS} FROM items WHERE owner_id = ?"  # noqa: S608
            f" AND kind IN ({', '.join('?' * len(kinds))})"
            " AND NOT EXISTS (SELECT 1 FROM json_each(?) AS wanted"
            " WHERE NOT EXISTS (SELECT 1 FROM json_each(wanted.value) AS fitting"
            " WHERE json_extract(labels, '$.' || wanted.key) IS fitting.value))"
            " ORDER BY occurred_at DESC, seq DESC LIMIT ?)"
        )
        owners = scope.readable_owners
        return await self._database.values(
            item_of,
            f"{' UNION ALL '.join([one_owners] * len(owners))}"
            " ORDER BY occurred_at DESC, seq DESC LIMIT ?",
            (*(value for one in owners for value in (one, *kinds, labels, limit)), limit),
        )

    async def after(self, seq: int, limit: int) -> list[NumberedItem]:
        """Give items of all owners in the order of writing, those after `seq`."""
        return await self._database.values(
            lambda row: NumberedItem(seq=row["seq"], item=item_of(row)),
            f"SELECT seq, {COLUMNS} FROM items WHERE seq > ? ORDER BY seq LIMIT ?",  # noqa: S608
            (seq, limit),
        )


def _can_be_stored(text: str) -> bool:
    """Whether a text is one that the store may hold: half a surrogate pair is none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
