"""The store of items against its suite, and the suite against deliberately wrong stores."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memory.items.item import KINDS, Item, ItemKind
from memory.items.scope import Scope
from memory.items.seen import NOTHING_SEEN, Seen
from memory.items.store import NumberedItem, WordHit
from memory.items.timespan import ALL_TIME, TimeSpan
from memory.recall import question_words
from memory.stores.database import Connection, SqlDatabase
from memory.stores.postgres import migrations as postgres_migrations
from memory.stores.sqlite import fulltext_index, fulltext_search, items
from memory.stores.sqlite.database import migrations_of
from memory.stores.sqlite.fts5_index import Fts5Index
from memory.stores.sqlite.items import SqlItemStore, put_item_blocking
from tests.conformance.suites.item_search import ItemStoreSuite
from tests.conformance.suites.item_values import Opening, OpenItems
from tests.conformance.suites.opened import run_test
from tests.support.episodes import open_memory
from tests.support.other_words import CAUGHT, expect_parts_caught
from tests.support.postgres import empty_schema_blocking, open_schema

POSTGRES_MIGRATIONS = migrations_of(postgres_migrations.__name__)
Making = Callable[[SqlDatabase], SqlItemStore]


def opening(directory: Path, make: Making = SqlItemStore) -> Opening:
    @asynccontextmanager
    async def opens() -> AsyncIterator[OpenItems]:
        async with open_memory(directory) as database:
            yield opened_on(database, make)

    return opens


def postgres_opening(schema: str, make: Making = SqlItemStore) -> Opening:
    @asynccontextmanager
    async def opens() -> AsyncIterator[OpenItems]:
        async with open_schema(schema, POSTGRES_MIGRATIONS) as database:
            yield opened_on(database, make)

    return opens


def opened_on(database: SqlDatabase, make: Making = SqlItemStore) -> OpenItems:
    async def put(new: Sequence[Item]) -> None:
        def work(writer: Connection) -> None:
            for entry in new:
                items.put_item_blocking(writer, entry)

        await database.write(work)

    async def delete(item_id: str) -> bool:
        return await database.write(partial(items.delete_item_blocking, item_id=item_id))

    return OpenItems(store=make(database), put=put, delete=delete)


class TestSqliteItems(ItemStoreSuite):
    @pytest.fixture
    def opens(self, tmp_path: Path) -> Opening:
        return opening(tmp_path)


class TestPostgresItems(ItemStoreSuite):
    @pytest.fixture
    def opens(self) -> Iterator[Opening]:
        with empty_schema_blocking("memory") as schema:
            yield postgres_opening(schema)


class Unscoped(SqlItemStore):
    async def get(self, item_id: str, scope: Scope) -> Item | None:
        del scope
        return await self.current(item_id)


class Wide(SqlItemStore):
    """Takes a label that may be missing for one that may be anything."""

    async def search(self, text: str, scope: Scope, **more: Any) -> list[WordHit]:
        kept = {name: value[0] for name, value in scope.wanted.items() if None not in value}
        wide = Scope(owner_id=scope.owner_id, **kept)
        return await super().search(text, wide, **more)


class FilteringLate(SqlItemStore):
    """Ranks everybody's and leaves out the others' afterwards."""

    async def search(self, text: str, scope: Scope, **more: Any) -> list[WordHit]:
        theirs = await super().search(text, Scope(owner_id="bob"), **more)
        own = await super().search(text, Scope(owner_id="ann"), **more)
        hits = [*theirs, *own][: more["limit"]]
        kept = {entry.id for entry in await self.get_many([hit.item_id for hit in hits], scope)}
        return [hit for hit in hits if hit.item_id in kept]


class ByAge(SqlItemStore):
    """Finds the right ones and gives the newest first."""

    async def search(self, text: str, scope: Scope, **more: Any) -> list[WordHit]:
        hits = await super().search(text, scope, **more)
        return sorted(hits, key=lambda hit: hit.item_id)


class AnyKind(SqlItemStore):
    async def search(self, text: str, scope: Scope, **more: Any) -> list[WordHit]:
        return await super().search(text, scope, **{**more, "kinds": KINDS})


class SayingYes(SqlItemStore):
    """Takes whatever shares a word for an answer."""

    async def search(self, text: str, scope: Scope, **more: Any) -> list[WordHit]:
        hits = await super().search(text, scope, **more)
        return [replace(hit, is_weak=False) for hit in hits]


class ShowingAgain(SqlItemStore):
    """Leaves out afterwards what was seen, so that it takes the places of others."""

    async def search(self, text: str, scope: Scope, **more: Any) -> list[WordHit]:
        seen: Seen = more.pop("seen", NOTHING_SEEN)
        hits = await super().search(text, scope, **more)
        items = await self.get_many([hit.item_id for hit in hits], scope)
        left = {entry.id for entry in items if not seen.has(entry)}
        return [hit for hit in hits if hit.item_id in left]


class Shuffling(SqlItemStore):
    async def get_many(self, item_ids: Sequence[str], scope: Scope) -> list[Item]:
        return sorted(await super().get_many(item_ids, scope), key=lambda entry: entry.id)


class OldestFirst(SqlItemStore):
    async def newest(
        self,
        scope: Scope,
        *,
        kinds: Sequence[ItemKind] = KINDS,
        limit: int,
        span: TimeSpan = ALL_TIME,
    ) -> list[Item]:
        return (await super().newest(scope, kinds=kinds, limit=limit, span=span))[::-1]


class Repeating(SqlItemStore):
    """Begins with the one that was given last."""

    async def after(
        self, seq: int, limit: int, *, owner_ids: Sequence[str] = ()
    ) -> list[NumberedItem]:
        return await super().after(seq - 1, limit, owner_ids=owner_ids)


S = ItemStoreSuite()
WRONG_STORES: list[tuple[Making, Any, dict[str, Any]]] = [
    (Unscoped, S.test_only_a_scope_that_covers_it_sees_it, {}),
    (Wide, S.test_a_scope_that_wants_a_label_or_none_sees_cases_without_it, {}),
    (Wide, S.test_a_case_that_gets_or_loses_a_label_is_found_by_what_it_is_now, {}),
    (FilteringLate, S.test_others_items_take_no_place, {}),
    (ByAge, S.test_a_title_counts_more_than_the_text, {}),
    (ByAge, S.test_what_has_more_of_the_question_comes_first, {}),
    (AnyKind, S.test_kinds_and_the_limit_are_kept, {}),
    (ShowingAgain, S.test_what_was_seen_takes_no_place_of_others, {}),
    (SayingYes, S.test_something_common_alone_is_not_about_the_question, {}),
    (Shuffling, S.test_many_come_in_the_order_of_their_ids, {}),
    (OldestFirst, S.test_the_newest_happened_last, {}),
    (Repeating, S.test_all_owners_items_come_in_the_order_of_writing, {}),
]


@pytest.mark.parametrize(("make", "test", "case"), WRONG_STORES, ids=range(len(WRONG_STORES)))
async def test_the_suite_catches_a_wrong_store(
    tmp_path: Path, make: Making, test: Any, case: Any
) -> None:
    with pytest.raises(CAUGHT):
        await run_test(test, opening(tmp_path, make), **case)


def _anybodys(connection: Any, item: Item) -> None:
    connection.execute("DELETE FROM items WHERE id = ?", (item.id,))
    put_item_blocking(connection, item)


def _rows_alone(connection: Any, item_id: str) -> bool:
    deleted: int = connection.execute("DELETE FROM items WHERE id = ?", (item_id,)).rowcount
    return deleted > 0


FOUND = {"body": "周五部署了支付服务，回滚过一次。", "questions": ["部署"]}
WRONG_PARTS: list[tuple[Any, str, Any, str, dict[str, Any]]] = [
    (items, "put_item_blocking", _anybodys, "an_id_stays_its_owners", {}),
    (items, "index_item_blocking", lambda *_: None, "it_is_found_by_any_of_its_words", FOUND),
    (items, "delete_item_blocking", _rows_alone, "what_was_deleted_is_nowhere", {}),
    (fulltext_index, "_beside", lambda *_: [], "what_was_said_before_and_after_finds_a_line", {}),
    (fulltext_index, "reindex_neighbours_blocking", lambda *_: None, "comes_changes_or_goes", {}),
    (fulltext_index, "_ends", lambda words, most: words[:most], "by_its_beginning_and_its_end", {}),
    (fulltext_search, "_most_points", lambda some, most: sorted(some)[:most], "equally_well", {}),
    (fulltext_search, "token", lambda *_: "kx OR o", "others_items_take_no_place", {}),
    (Fts5Index, "having", lambda _, term, __: f'{term}"', "no_question_is_an_error", {}),
    (question_words, "is_stop", lambda _: False, "none_of_the_words", {"question": "what is the"}),
    (question_words, "MAX_QUESTION_CHARS", 0, "end_of_a_long_question_counts", {}),
]


async def test_the_suite_catches_wrong_parts(tmp_path: Path) -> None:
    await expect_parts_caught(tmp_path, opening, S, WRONG_PARTS)
