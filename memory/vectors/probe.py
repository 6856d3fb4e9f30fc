"""Opens a vector index in a process of its own: a damaged one can crash the process.

`python -m memory.vectors.probe DIRECTORY MODEL DIMENSION`; the exit code is 0 if it can be used.
Importing Chroma takes over a second of processor time, most of it for parts that are not used here,
so its core is asked directly. Where that fails with an exception, Chroma itself decides: the core's
interface is not a public one.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

_TIMEOUT_S: Final = 60.0
_ARGUMENTS: Final = 4
_OWNER: Final = ("default_tenant", "default_database")


def is_sound_blocking(directory: Path, model_id: str, dimension: int) -> bool:
    """Return whether the index can be opened and searched, tried in another process."""
    command = [sys.executable, "-m", "memory.vectors.probe", str(directory), model_id]
    try:
        done = subprocess.run(  # noqa: S603  this very program
            [*command, str(dimension)],
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).resolve().parents[2],
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def search_core_blocking(directory: Path) -> None:
    """Open the index with Chroma's core alone, and search each collection for any neighbour.

    Raises an exception of the core if that fails. A damaged index may end the process instead.
    """
    import chromadb_rust_bindings as core  # type: ignore[import-untyped]  # noqa: PLC0415

    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    database = core.SqliteDBConfig(
        hash_type=core.MigrationHash.MD5,
        migration_mode=core.MigrationMode.Apply,
        url=f"{directory}/chroma.sqlite3",
    )
    index = core.Bindings(
        allow_reset=False,
        sqlite_db_config=database,
        persist_path=str(directory),
        hnsw_cache_size=1,
    )
    for collection in index.list_collections(None, None, *_OWNER):
        index.count(str(collection.id), *_OWNER)
        vectors = [[1.0] + [0.0] * (collection.dimension - 1)] if collection.dimension else []
        asked = (str(collection.id), None, vectors, 10, None, None, ["distances"])
        index.query(*asked, *_OWNER)


def _search_chroma_blocking(directory: Path, model_id: str, dimension: int) -> None:
    import anyio  # noqa: PLC0415

    from memory.vectors.chroma import ChromaVectorIndex  # noqa: PLC0415

    async def search() -> None:
        index = ChromaVectorIndex(directory, model_id=model_id, dimension=dimension)
        await index.count()
        await index.nearest([1.0] + [0.0] * (dimension - 1), [""], limit=10)
        await index.close()

    anyio.run(search)


if __name__ == "__main__":
    assert len(sys.argv) == _ARGUMENTS, "directory, model, dimension"
    try:
        search_core_blocking(Path(sys.argv[1]))
    except Exception:  # noqa: BLE001  whatever the core raises, Chroma's public interface decides
        _search_chroma_blocking(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
