"""A memory in a directory of its own, written and read the way the gateway does it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from memory.clock import utc_now
from memory.episodes.episode import EpisodeDraft, Sections
from memory.episodes.store import SqlEpisodeStore
from memory.episodes.writer import MemoryWriter
from memory.items.scope import Scope
from memory.recall.retrievers import FulltextRetriever, Retriever
from memory.recall.search import MemorySearch
from memory.stores.sqlite import migrations
from memory.stores.sqlite.database import Database, migrations_of, open_database
from memory.stores.sqlite.items import SqlItemStore

BATCH = 200
MIGRATIONS = migrations_of(migrations.__name__)


@dataclass(frozen=True)
class Memory:
    """The parts that a measurement speaks to."""

    database: Database
    items: SqlItemStore
    writer: MemoryWriter

    def search(self, *more_arms: Retriever) -> MemorySearch:
        retrievers: list[Retriever] = [FulltextRetriever(self.items), *more_arms]
        return MemorySearch(self.items, retrievers, now=utc_now)

    async def write_all(self, drafts: Sequence[EpisodeDraft]) -> None:
        for start in range(0, len(drafts), BATCH):
            for written in await self.writer.write_all(drafts[start : start + BATCH]):
                if written.status != "stored":
                    print(f"  {written.status}: {written.reason or written.episode_id}")


@asynccontextmanager
async def open_memory(directory: Path) -> AsyncIterator[Memory]:
    database = await open_database(directory / "memory.sqlite3", MIGRATIONS)
    try:
        yield Memory(
            database,
            SqlItemStore(database),
            MemoryWriter(SqlEpisodeStore(database, utc_now), deliver_to=(), now=utc_now),
        )
    finally:
        await database.close()


@asynccontextmanager
async def memory_of(drafts: Sequence[EpisodeDraft]) -> AsyncIterator[Memory]:
    """A memory that holds these drafts and is gone afterwards."""
    async with (
        anyio.TemporaryDirectory(prefix="recall-") as directory,
        open_memory(Path(directory)) as memory,
    ):
        await memory.writer.write_all(drafts)
        yield memory


def line(
    owner: str, item_id: str, text: str, at: datetime | None = None, **more: Any
) -> EpisodeDraft:
    """One thing that was said, as an import of a conversation writes it."""
    return EpisodeDraft(
        episode_type="dialogue",
        title="",
        scope=Scope(owner_id=owner),
        sections=Sections(context=text),
        occurred_at=at or datetime(2024, 1, 1, tzinfo=UTC),
        episode_id=item_id,
        **more,
    )
