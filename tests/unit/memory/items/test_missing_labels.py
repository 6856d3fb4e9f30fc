"""What a case lacks is marked in the index, of old rows as of new ones; other kinds carry no marks."""

import sqlite3
from functools import partial
from pathlib import Path

from memory.items import Item, ItemKind
from memory.rebuilding import rebuild
from memory.scope import LABELS, Scope, SearchScope
from memory.stores.sqlite.fulltext_index import label_tokens, scope_tokens
from memory.stores.sqlite.items import SqliteItemStore, put_item_blocking
from tests.conformance.suites.item_values import ANN, item
from tests.support.episodes import open_memory

ASKED = SearchScope(owner_id="ann", app_code="shop", or_without=("app_code",))


def marks(scope: Scope, kind: str) -> list[str]:
    return [token for token in scope_tokens("ann", kind, scope.labels) if token.startswith("w")]


def test_a_case_is_marked_for_each_label_it_lacks() -> None:
    assert len(set(marks(ANN, "case"))) == len(LABELS)
    labelled = marks(Scope(owner_id="ann", app_code="shop"), "case")
    (gone,) = set(marks(ANN, "case")) - set(labelled)
    ((_, asked),) = label_tokens(ASKED)
    assert gone == asked


async def test_a_rebuild_leaves_everything_found_as_it_was(tmp_path: Path) -> None:
    kinds: list[ItemKind] = ["case", "note", "episode"]
    items: list[Item] = [item(kind, "payroll", kind=kind) for kind in kinds]
    items += [
        item(f"shop_{kind}", "payroll", kind=kind, scope=Scope(owner_id="ann", app_code="shop"))
        for kind in kinds
    ]

    def lose_all_words(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM item_words")

    async with open_memory(tmp_path) as database:
        store = SqliteItemStore(database)

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
