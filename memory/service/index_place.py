"""Where the vector index is: in memory's PostgreSQL database, or in the data directory.

PostgreSQL has it if its server has pgvector. An index that changes its place is made anew from the
items, and the one that was left is removed.
"""

import shutil
from functools import partial
from pathlib import Path
from typing import Final

import anyio.to_thread

from memory.clock import Now
from memory.embeddings.choice import make_embedder
from memory.remote.breaker import ReadingBreakers
from memory.service.plan import MemoryPlan
from memory.stores.database import SqlDatabase
from memory.stores.sqlite.items import SqlItemStore
from memory.vectors import pgvector
from memory.vectors.chroma import ChromaVectorIndex
from memory.vectors.indexer import BACKEND, IndexFiles, VectorIndexer
from memory.vectors.pgvector import PgvectorIndex
from memory.vectors.probe import is_sound_blocking
from memory.vectors.protocol import VectorIndex
from memory.vectors.state import SqlIndexState

_DIR: Final = "vectors"


async def open_vectors(
    plan: MemoryPlan,
    database: SqlDatabase,
    items: SqlItemStore,
    now: Now,
    reading: ReadingBreakers,
) -> VectorIndexer | None:
    """Return the vector index; None if another process serves it, or without an embedder, and then
    what an earlier one left is removed.
    """
    if not plan.serves_vectors:
        return None
    directory = plan.data_dir / _DIR
    embedder = await make_embedder(
        plan.embedder,
        mask=plan.mask,
        now=now,
        on_breaker=reading.watch(BACKEND),
    )
    states = SqlIndexState(database)
    if embedder is None:
        if database.engine == "postgresql":
            await pgvector.remove(database)
        await states.remove()
        await _remove_files(directory)
        return None
    return VectorIndexer(await _files(database, directory), embedder, items, states)


def place_sentence(hindrance: str | None) -> str:
    """Return where the vectors are whose database is PostgreSQL, as a sentence.

    `hindrance` is why they cannot be in the database, if they cannot.
    """
    if hindrance is None:
        return "Memory's vectors are in PostgreSQL."
    return f"Memory's vectors are in CANDOR_DATA_DIR, since {hindrance}"


async def _files(database: SqlDatabase, directory: Path) -> IndexFiles:
    if database.engine != "postgresql":
        return _local(directory, None)
    hindrance = await pgvector.prepare(database)
    if hindrance is not None:
        return _local(directory, place_sentence(hindrance))
    await _remove_files(directory)

    def open_table(_model_id: str, dimension: int) -> VectorIndex:
        return PgvectorIndex(database, dimension=dimension)

    async def is_sound(*_: object) -> bool:  # noqa: RUF029  as `IndexFiles` asks
        return True  # no other process is needed to try it: the indexer counts its entries

    return IndexFiles(open=open_table, is_sound=is_sound, place=place_sentence(None))


def _local(directory: Path, place: str | None) -> IndexFiles:
    async def is_sound(model_id: str, dimension: int) -> bool:
        return await anyio.to_thread.run_sync(
            is_sound_blocking, directory, model_id, dimension, abandon_on_cancel=True
        )

    def open_directory(model_id: str, dimension: int) -> VectorIndex:
        return ChromaVectorIndex(directory, model_id=model_id, dimension=dimension)

    return IndexFiles(open=open_directory, is_sound=is_sound, place=place)


async def _remove_files(directory: Path) -> None:
    await anyio.to_thread.run_sync(partial(shutil.rmtree, directory, ignore_errors=True))
