"""Memory in PostgreSQL: its vectors are there, too, if the server has pgvector, else in files."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from memory.embeddings.choice import EmbedderChoice
from memory.service.memory import Memory
from memory.stores.postgres.database import PostgresDatabase, open_postgres
from memory.vectors import pgvector
from tests.conformance.test_item_stores import POSTGRES_MIGRATIONS
from tests.support.memories import whole_memory
from tests.support.postgres import new_database_blocking, plain_user_blocking
from tests.unit.memory.vectors.test_embedder_changed import SCOPE, WAIT_S, settled, write

SCHEMA = "candor_memory"
IN_FILES = "Memory's vectors are in CANDOR_DATA_DIR, since "


@pytest.fixture
def url() -> Iterator[str]:
    with new_database_blocking("unasked") as address:
        yield address


@asynccontextmanager
async def remembering(directory: Path, url: str, embedder: Any = "auto") -> AsyncIterator[Memory]:
    opening = partial(open_postgres, url, POSTGRES_MIGRATIONS, schema=SCHEMA)
    choice = EmbedderChoice(name=embedder)
    with anyio.fail_after(WAIT_S):
        async with whole_memory(directory, open_database=opening, embedder=choice) as memory:
            if memory.vectors is not None:
                await settled(memory)
            yield memory


async def found(memory: Memory, question: str) -> set[str]:
    """Return the titles of what is found by its meaning."""
    results = await memory.search.search(question, scope=SCOPE)
    assert results.degraded == ()
    return {hit.item.title for hit in results.hits if "meaning" in hit.why}


async def stored(memory: Memory) -> set[str] | None:
    """Return the ids of the items with a vector in the database; None if no index is there."""
    if await memory.database.scalar("SELECT to_regclass('item_vectors')") is None:
        return None
    return {row["item_id"] for row in await memory.database.rows("SELECT * FROM item_vectors")}


async def test_the_index_follows_the_servers_extension_and_is_made_anew_from_the_items(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = anyio.Path(tmp_path / "vectors")
    async with remembering(tmp_path, url) as memory:
        badge = await write(memory, "badge", recipe="Show the badge at the gate.")
        await delivered(memory)
        assert await stored(memory) == {badge}
        assert await found(memory, "badge") == {"badge"}
        assert not await files.exists()
    with monkeypatch.context() as older:
        older.setattr(pgvector, "_OLDEST", (1000, 0))
        async with remembering(tmp_path, url) as memory:
            assert memory.vectors is not None
            assert memory.vectors.place == f"{IN_FILES}{pgvector._TOO_OLD}"  # noqa: SLF001
            assert await stored(memory) is None
            assert await found(memory, "badge") == {"badge"}
            key = await write(memory, "key")
            await delivered(memory)
            assert await memory.vectors.missing([badge, key]) == set()
    assert await files.exists()
    async with remembering(tmp_path, url) as memory:
        assert await stored(memory) == {badge, key}
        assert not await files.exists()
        (health,) = await memory.health()
        assert health.backend.detail == "Memory's vectors are in PostgreSQL."


async def test_what_is_forgotten_goes_from_the_index(tmp_path: Path, url: str) -> None:
    async with remembering(tmp_path, url) as memory:
        badge = await write(memory, "badge")
        await delivered(memory)
        assert await stored(memory) == {badge}
        await memory.forget(badge, scope=SCOPE)
        await delivered(memory)
        assert await stored(memory) == set()


async def test_an_index_that_was_half_made_in_files_is_made_whole_in_the_database(
    tmp_path: Path, url: str
) -> None:
    async with remembering(tmp_path, url, "none") as memory:
        badge = await write(memory, "badge")
    async with remembering(tmp_path, url) as memory:
        assert await stored(memory) == {badge}
        undone = "UPDATE vector_index SET complete = 0, built_to = 1000"
        await memory.database.execute(undone)
        await memory.database.execute("DROP TABLE item_vectors")
    async with remembering(tmp_path, url) as memory:
        assert await stored(memory) == {badge}


async def test_without_an_embedder_the_index_in_the_database_is_removed(
    tmp_path: Path, url: str
) -> None:
    async with remembering(tmp_path, url) as memory:
        await write(memory, "badge")
    async with remembering(tmp_path, url, "none") as memory:
        assert await stored(memory) is None
        assert await memory.database.rows("SELECT 1 FROM vector_index") == []


async def test_a_user_who_may_not_add_the_extension_is_told_and_has_files(
    tmp_path: Path, url: str
) -> None:
    with plain_user_blocking(url) as theirs:
        database = PostgresDatabase(theirs, SCHEMA)
        hindrance = await pgvector.hindrance(database)
        await database.close()
        assert hindrance is not None
        assert "only a superuser" in hindrance
        async with remembering(tmp_path, theirs) as memory:
            assert memory.vectors is not None
            assert memory.vectors.place == f"{IN_FILES}{hindrance}"
            await write(memory, "badge")
            await delivered(memory)
            assert await found(memory, "badge") == {"badge"}


async def delivered(memory: Memory) -> None:
    waiting = "SELECT 1 FROM outbox WHERE status != 'delivered'"
    while await memory.database.scalar(waiting) is not None:  # noqa: ASYNC110  no event tells it
        await anyio.sleep(0.02)
