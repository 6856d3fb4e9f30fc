"""Labels that an item lacks are in the index: each one of a case, the project of any item; also of old rows."""

import json
import sqlite3
from functools import partial
from pathlib import Path

from memory.clock import rfc3339
from memory.items.item import Item, ItemKind
from memory.items.scope import LABELS, Scope, SearchScope
from memory.service.rebuilding import rebuild
from memory.stores.sqlite.database import Database, open_database
from memory.stores.sqlite.fulltext_index import index_item_blocking, label_tokens, scope_tokens
from memory.stores.sqlite.items import SqlItemStore, put_item_blocking
from memory.stores.sqlite.statements import insert_blocking
from tests.conformance.suites.item_values import ANN, item
from tests.support.episodes import FILE, MIGRATIONS, open_memory

ASKED = SearchScope(owner_id="ann", app_code="shop", or_without=("app_code",))


def marks(scope: Scope, kind: str) -> list[str]:
    return [token for token in scope_tokens("ann", kind, scope.labels) if token.startswith("w")]


def test_a_case_is_marked_for_each_label_it_lacks() -> None:
    assert len(set(marks(ANN, "case"))) == len(LABELS)
    labelled = marks(Scope(owner_id="ann", app_code="shop"), "case")
    (gone,) = set(marks(ANN, "case")) - set(labelled)
    ((_, asked),) = label_tokens(ASKED)
    assert gone == asked


async def test_a_rebuild_leaves_everything_found_as_it_was(database: Database) -> None:
    kinds: list[ItemKind] = ["case", "note", "episode"]
    items: list[Item] = [item(kind, "payroll", kind=kind) for kind in kinds]
    items += [
        item(f"shop_{kind}", "payroll", kind=kind, scope=Scope(owner_id="ann", app_code="shop"))
        for kind in kinds
    ]

    def lose_all_words(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM item_words")

    store = SqlItemStore(database)

    async def found(scope: Scope) -> list[str]:
        hits = await store.search("payroll", scope, limit=9)
        return sorted(hit.item_id.removeprefix("epi_") for hit in hits)

    for each_item in items:
        await database.write(partial(put_item_blocking, item=each_item))
    for _ in range(2):
        assert await found(ANN) == sorted([*kinds, *(f"shop_{kind}" for kind in kinds)])
        assert await found(ASKED) == ["case", "shop_case", "shop_episode", "shop_note"]
        await database.write(lose_all_words)
        assert await found(ANN) == []
        assert await rebuild(database) == len(items)


def put_old(connection: sqlite3.Connection, old: Item) -> None:
    """Write an item as the table of then has it."""
    row = {
        name: getattr(old, name) for name in ("id", "kind", "title", "summary", "body", "source")
    }
    labels = json.dumps(old.scope.labels)
    at = rfc3339(old.occurred_at)
    row |= {"owner_id": "ann", "labels": labels, "tags": "[]", "revision": 1}
    cursor = insert_blocking(connection, "items", row | {"occurred_at": at, "updated_at": at})
    assert cursor.lastrowid is not None
    index_item_blocking(connection, cursor.lastrowid)


async def test_old_items_without_a_project_are_found_in_each(tmp_path: Path) -> None:
    """Items are copied into a new table; the numbers of deleted ones are not given again."""
    in_project = SearchScope(owner_id="ann", project_id="shop", or_without=("project_id",))
    (mark,) = marks(ANN, "note")
    bank = Scope(owner_id="ann", project_id="bank")
    database = await open_database(tmp_path / FILE, MIGRATIONS[:14])
    for old in [item("old", "payroll"), item("bank", "payroll", scope=bank), item("last")]:
        await database.write(partial(put_old, old=old))
    await database.write(lambda writer: writer.execute("DELETE FROM items WHERE id = 'epi_last'"))
    await database.write(
        lambda writer: writer.execute(
            "UPDATE item_words SET scope = replace(scope, ?, '')", (mark,)
        )
    )
    await database.close()
    async with open_memory(tmp_path) as database:
        store = SqlItemStore(database)
        await database.write(partial(put_item_blocking, item=item("new", "payroll", kind="turn")))
        hits = await store.search("payroll", in_project, limit=9)
        assert {hit.item_id for hit in hits} == {"epi_old", "epi_new"}
        assert [row.seq for row in await store.after(0, 9)] == [1, 2, 4]
