"""Pages of items, on both engines."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from memory.items.item import KINDS, Item
from memory.items.scope import WORKSPACE_OWNER, Scope
from memory.items.store import UnknownCursor
from memory.service import item_pages
from memory.service.item_pages import SqlItemPages
from memory.stores.database import Connection, SqlDatabase
from memory.stores.sqlite.items import put_item_blocking
from tests.conformance.suites.item_values import ANN, AT, BOB, item
from tests.conformance.test_item_stores import POSTGRES_MIGRATIONS
from tests.support.episodes import open_memory
from tests.support.postgres import empty_schema_blocking, open_schema

SHARED = Scope(owner_id=WORKSPACE_OWNER)


@contextmanager
def _opening(engine: str, directory: Path) -> Iterator[AbstractAsyncContextManager[SqlDatabase]]:
    if engine == "sqlite":
        yield open_memory(directory)
    else:
        with empty_schema_blocking("memory") as schema:
            yield open_schema(schema, POSTGRES_MIGRATIONS)


@asynccontextmanager
async def _holding(engine: str, directory: Path, items: list[Item]) -> AsyncIterator[SqlItemPages]:
    def work(writer: Connection) -> None:
        for entry in items:
            put_item_blocking(writer, entry)

    with _opening(engine, directory) as opens:
        async with opens as database:
            await database.write(work)
            yield SqlItemPages(database)


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
async def test_pages_have_each_item_once_latest_first_however_many_are_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setattr(item_pages, "_BATCH", 3)
    scopes = (ANN, SHARED, BOB)
    items = [
        item(
            f"{n}",
            f"entry {n} {'Straße 部署' if n % 5 == 0 else ''}",
            scope=scopes[n % 3],
            kind=KINDS[n % 2],
            occurred_at=AT + timedelta(hours=n // 4),
        )
        for n in range(40)
    ]
    async with _holding(engine, tmp_path, items) as pages:
        listed, cursor = list[str](), None
        while True:
            page = await pages.page(ANN, limit=4, cursor=cursor)
            listed += [entry.item.id for entry in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert listed == [f"epi_{n}" for n in reversed(range(40)) if n % 3 < 2]
        worded = await pages.page(ANN, words="STRASSE 部署", kinds=KINDS[:1], limit=9)
        assert [entry.item.id for entry in worded.items] == ["epi_30", "epi_10", "epi_0"]
        assert {entry.why for entry in worded.items} == {"remembered, contains strasse and 部署"}
        assert (await pages.page(ANN, kinds=[], limit=9)).items == []
        with pytest.raises(UnknownCursor):
            await pages.page(ANN, limit=9, cursor="2026-01-01T00:00:00Z_x")
