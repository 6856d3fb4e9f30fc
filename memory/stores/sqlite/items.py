"""Items: written within a caller's transaction, read and searched by anyone."""

import json
from collections.abc import Sequence
from typing import Any, Final

from memory.errors import StoreConflict
from memory.items.item import KINDS, Item, ItemKind
from memory.items.scope import Scope
from memory.items.seen import NOTHING_SEEN, Seen
from memory.items.store import NumberedItem, WordHit
from memory.items.timespan import ALL_TIME, TimeSpan
from memory.recall.question_words import QuestionWords
from memory.stores.database import Connection, SqlDatabase, decoding_rows
from memory.stores.sqlite.fulltext_index import (
    index_item_blocking,
    reindex_neighbours_blocking,
    unindex_item_blocking,
)
from memory.stores.sqlite.fulltext_search import FulltextSearch
from memory.stores.sqlite.owner_index import OwnerIndex, RowCounts
from memory.stores.sqlite.row_values import Row, columns_of, read_value
from memory.stores.sqlite.statements import (
    IN_IDS,
    first_row,
    id_list,
    insert_blocking,
    is_storable,
    placeholders,
    span_condition,
)
from memory.stores.sqlite.stems import Stems

_FIXED: Final = ("id", "kind", "owner_id")
_CHANGING: Final = (
    *("labels", "title", "summary", "body", "source", "tags", "conversation_id", "turn_id"),
    *("thread", "position", "occurred_at", "updated_at", "revision", "valid_until"),
)
COLUMNS: Final = ", ".join((*_FIXED, *_CHANGING))
_VALID_UNTIL: Final = (
    "CASE WHEN kind IN ('turn', 'episode') THEN (SELECT max(told.valid_until) FROM items AS told"
    " WHERE told.turn_id = items.turn_id AND told.kind = 'fact') ELSE valid_until END"
)
"""A turn that told facts, and what was made of it, holds no longer than they do."""
_DATED: Final = (
    f"SELECT {', '.join((*_FIXED, *(name for name in _CHANGING if name != 'valid_until')))},"  # noqa: S608
    f" {_VALID_UNTIL} AS valid_until FROM items WHERE id IN {IN_IDS}"
)
_ON_CONFLICT: Final = (
    f"ON CONFLICT (id) DO UPDATE SET ({', '.join(_CHANGING)})"
    f" = ({', '.join(f'excluded.{name}' for name in _CHANGING)})"
    " WHERE items.owner_id = excluded.owner_id AND items.kind = excluded.kind"
)


@decoding_rows()
def item_of(row: Row) -> Item:
    """Return the item in a row of `COLUMNS`."""
    scope = Scope(owner_id=row["owner_id"], **json.loads(row["labels"]))
    return read_value(Item, row, scope=scope, tags=tuple(json.loads(row["tags"])))


def _row_of(item: Item) -> dict[str, Any]:
    labels = json.dumps(item.scope.labels, ensure_ascii=False)
    row = columns_of(item, labels=labels, tags=json.dumps(item.tags, ensure_ascii=False))
    return row | {"owner_id": row.pop("scope").owner_id}


def put_item_blocking(connection: Connection, item: Item) -> None:
    """Write an item or its new state and index it; an id keeps its owner and its kind."""
    before = _place_blocking(connection, item.id)
    if insert_blocking(connection, "items", _row_of(item), _ON_CONFLICT).rowcount != 1:
        raise StoreConflict("The id belongs to another item.")
    now = _place_blocking(connection, item.id)
    assert now is not None, "it was written"
    index_item_blocking(connection, now["seq"])
    if before is not None and tuple(before) != tuple(now):
        reindex_neighbours_blocking(connection, before)


def delete_item_blocking(connection: Connection, item_id: str) -> bool:
    """Remove an item from the store and the index; return whether it was there."""
    row = _place_blocking(connection, item_id)
    if row is None:
        return False
    connection.execute("DELETE FROM items WHERE seq = ?", (row["seq"],))
    unindex_item_blocking(connection, row["seq"])
    reindex_neighbours_blocking(connection, row)
    return True


def item_blocking(connection: Connection, item_id: str) -> Item | None:
    """Return an item, whoever owns it; None if there is none."""
    row = connection.execute(f"SELECT {COLUMNS} FROM items WHERE id = ?", (item_id,)).fetchone()  # noqa: S608
    return None if row is None else item_of(row)


def _place_blocking(connection: Connection, item_id: str) -> Any:
    return first_row(
        connection, "SELECT seq, owner_id, thread, position FROM items WHERE id = ?", (item_id,)
    )


def _labels_condition(scope: Scope) -> tuple[str, list[str]]:
    """Return what limits items to the labels of a query, as a continued condition, and its
    values.
    """
    conditions, given = "", list[str]()
    for name, values in scope.wanted.items():
        label = f"json_extract(labels, '$.{name}')"
        known = [value for value in values if value is not None]
        or_none = f" OR {label} IS NULL" if None in values else ""
        conditions += f" AND ({label} IN ({placeholders(known)}){or_none})"
        given += known
    return conditions, given


class SqlItemStore:
    """Items in the memory's database."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._counts = RowCounts()
        self._owners = OwnerIndex()
        self._stems = Stems()

    async def get(self, item_id: str, scope: Scope) -> Item | None:
        found = await self.get_many([item_id], scope)
        return found[0] if found else None

    async def get_many(self, item_ids: Sequence[str], scope: Scope) -> list[Item]:
        found = await self._database.values(item_of, _DATED, {"ids": id_list(item_ids)})
        items = {item.id: item for item in found if scope.covers(item.scope)}
        return [items[item_id] for item_id in dict.fromkeys(item_ids) if item_id in items]

    async def current(self, item_id: str) -> Item | None:
        """Return an item as it is now, whoever owns it, for deliveries; None if it is gone."""
        sql = f"SELECT {COLUMNS} FROM items WHERE id = ?"  # noqa: S608
        return await self._database.value(item_of, sql, (item_id,))

    async def search(
        self,
        text: str,
        scope: Scope,
        *,
        kinds: Sequence[ItemKind] = KINDS,
        limit: int,
        seen: Seen = NOTHING_SEEN,
        span: TimeSpan = ALL_TIME,
    ) -> list[WordHit]:
        (found,) = await self.search_each(
            [text], scope, kinds=kinds, limit=limit, seen=seen, span=span
        )
        return found

    async def search_each(
        self,
        texts: Sequence[str],
        scope: Scope,
        *,
        kinds: Sequence[ItemKind] = KINDS,
        limit: int,
        seen: Seen = NOTHING_SEEN,
        span: TimeSpan = ALL_TIME,
    ) -> list[list[WordHit]]:
        # a host or a version of one incident says little of a cause, and its name would count
        # several times
        with_compounds = tuple(kinds) != ("case",)
        wordings = [QuestionWords.of(text, with_compounds=with_compounds) for text in texts]
        search = FulltextSearch(
            QuestionWords({}, ()),
            scope,
            kinds,
            limit,
            self._counts,
            self._owners,
            self._stems,
            seen,
            span,
        )
        return await self._database.read(
            lambda connection: search.run_each_blocking(connection, wordings)
        )

    async def newest(
        self,
        scope: Scope,
        *,
        kinds: Sequence[ItemKind] = KINDS,
        limit: int,
        span: TimeSpan = ALL_TIME,
    ) -> list[Item]:
        labelled, labels = _labels_condition(scope)
        if not all(map(is_storable, labels)):
            return []
        within, bounds = span_condition(span)
        # one owner at a time, so that each is read off the index in its order, however many there
        # are
        of_one_owner = (
            f"SELECT * FROM (SELECT seq, {COLUMNS} FROM items WHERE owner_id = ?"  # noqa: S608
            f" AND valid_until IS NULL AND kind IN ({placeholders(kinds)}){within}"
            " AND (kind NOT IN ('turn', 'episode') OR NOT EXISTS (SELECT 1 FROM items AS told"
            " WHERE told.turn_id = items.turn_id AND told.kind = 'fact'"
            " AND told.valid_until IS NOT NULL))"
            f"{labelled} ORDER BY occurred_at DESC, seq DESC LIMIT ?)"
        )
        owners = scope.readable_owners
        return await self._database.values(
            item_of,
            f"{' UNION ALL '.join([of_one_owner] * len(owners))}"
            " ORDER BY occurred_at DESC, seq DESC LIMIT ?",
            (
                *(value for owner in owners for value in (owner, *kinds, *bounds, *labels, limit)),
                limit,
            ),
        )

    async def after(
        self, seq: int, limit: int, *, owner_ids: Sequence[str] = ()
    ) -> list[NumberedItem]:
        # in the order of the rows: sorting an owner's items for each batch takes longer
        owned = f" AND owner_id IN ({placeholders(owner_ids)})" if owner_ids else ""
        return await self._database.values(
            lambda row: NumberedItem(seq=row["seq"], item=item_of(row)),
            f"SELECT seq, {COLUMNS} FROM items NOT INDEXED WHERE seq > ?{owned}"  # noqa: S608
            " ORDER BY seq LIMIT ?",
            (seq, *owner_ids, limit),
        )
