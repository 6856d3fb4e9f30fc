"""The vector index gone, damaged or of another model, on the real Chroma: the search goes on and it comes back."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from memory.episodes.episode import EpisodeDraft, Sections
from memory.items.scope import Scope
from memory.service.memory import Memory
from memory.vectors.probe import is_sound_blocking
from tests.support.episodes import FILE
from tests.support.memories import whole_memory

pytestmark = pytest.mark.fault

SCOPE = Scope(owner_id="ada")
LIMIT_S = 60.0


async def write(memory: Memory, count: int) -> None:
    for n in range(count):
        sections = Sections(recipe=f"Restart importer{n} after rotating certificate{n}.")
        await memory.writer.write(
            EpisodeDraft(episode_type="howto", title=f"importer{n}", scope=SCOPE, sections=sections)
        )


async def both_arms(memory: Memory) -> None:
    """Wait until the vectors have all, and what is asked for is found by its words and its meaning."""
    assert memory.vectors is not None
    with anyio.fail_after(LIMIT_S):
        waiting = "SELECT 1 FROM outbox WHERE backend = 'vectors' AND status = 'pending'"
        while await memory.database.rows(waiting):  # noqa: ASYNC110  nothing tells it
            await anyio.sleep(0.05)
        while True:
            await memory.vectors.wait_settled()
            found = await memory.search.search("restart importer3 certificate3", scope=SCOPE)
            if not found.degraded and "meaning" in found.hits[0].why:
                break
            await anyio.sleep(0.05)
    assert found.hits[0].item.title == "importer3"


def garble_database(vectors: Path) -> None:
    (vectors / "chroma.sqlite3").write_bytes(b"no database " * 1000)


def garble_vectors(vectors: Path) -> None:
    for file in vectors.rglob("*.bin"):
        file.write_bytes(b"\xff" * file.stat().st_size)


def name_another_model(vectors: Path) -> None:
    with closing(sqlite3.connect(vectors.parent / FILE)) as database, database:
        assert database.execute("UPDATE vector_index SET model_id = 'another'").rowcount == 1


@pytest.mark.parametrize(
    "damage",
    [garble_database, garble_vectors, name_another_model],
    ids=lambda name: name.__name__,
)
async def test_an_index_that_was_damaged_or_of_another_model_is_made_anew(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    async with whole_memory(tmp_path) as memory:
        await write(memory, 6)
        await both_arms(memory)
    await anyio.to_thread.run_sync(damage, tmp_path / "vectors")
    async with whole_memory(tmp_path) as memory:
        found = await memory.search.search("restart importer3 certificate3", scope=SCOPE)
        assert found.hits[0].item.title == "importer3", "words are enough"
        await both_arms(memory)
        assert memory.vectors is not None
        assert (await memory.vectors.check()).state == "ok"


async def test_an_index_that_is_deleted_while_it_is_used_comes_back(tmp_path: Path) -> None:
    async with whole_memory(tmp_path) as memory:
        await write(memory, 6)
        await both_arms(memory)
        await anyio.to_thread.run_sync(shutil.rmtree, tmp_path / "vectors")
        found = await memory.search.search("restart importer3 certificate3", scope=SCOPE)
        assert found.hits[0].item.title == "importer3"
        assert list(found.degraded) == ["vector_error"]
        await both_arms(memory)


async def test_what_was_forgotten_is_not_in_an_index_made_anew(tmp_path: Path) -> None:
    async with whole_memory(tmp_path) as memory:
        await write(memory, 6)
        await both_arms(memory)
        (hit, *_) = (await memory.search.search("importer5", scope=SCOPE)).hits
        assert await memory.forget(hit.item.id, SCOPE)
    await anyio.to_thread.run_sync(shutil.rmtree, tmp_path / "vectors")
    async with whole_memory(tmp_path) as memory:
        await both_arms(memory)
        found = await memory.search.search("restart importer5 certificate5", scope=SCOPE)
        assert "importer5" not in {entry.item.title for entry in found.hits}


async def test_one_that_cannot_be_made_is_told_and_the_search_goes_on(tmp_path: Path) -> None:
    await anyio.to_thread.run_sync((tmp_path / "vectors").write_text, "a file, no directory")
    async with whole_memory(tmp_path) as memory:
        await write(memory, 6)
        assert memory.vectors is not None
        with anyio.fail_after(LIMIT_S):
            await memory.vectors.wait_settled()
        found = await memory.search.search("restart importer3", scope=SCOPE)
        assert found.hits[0].item.title == "importer3"
        assert list(found.degraded) == ["vector_error"]
        assert (await memory.vectors.check()).state == "failing"


def test_the_probe_tells_the_sound_from_the_damaged(tmp_path: Path) -> None:
    vectors = tmp_path / "vectors"
    assert is_sound_blocking(vectors, "some-model", 512)
    code = (
        "import sys, pathlib, memory.vectors.probe as probe;"
        "probe.search_core_blocking(pathlib.Path(sys.argv[1])); sys.exit('chromadb' in sys.modules)"
    )
    root = Path(__file__).resolve().parents[2]
    quick = subprocess.run([sys.executable, "-c", code, str(vectors)], cwd=root, check=False)
    assert quick.returncode == 0, "the core alone is asked: a start does not wait for all of Chroma"
    garble_database(vectors)
    assert not is_sound_blocking(vectors, "some-model", 512)


def test_importing_memory_does_not_import_chroma() -> None:
    """It takes most of a second, which the command line and a start without memory would pay."""
    code = "import sys, memory.service.assemble; sys.exit('chromadb' in sys.modules)"
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


async def test_a_hole_in_it_is_mended_once_a_search_finds_what_it_lacks(tmp_path: Path) -> None:
    async with whole_memory(tmp_path) as memory:
        await write(memory, 6)
        await both_arms(memory)
        (hit, *_) = (await memory.search.search("importer3", scope=SCOPE)).hits
        assert memory.vectors is not None
        await memory.vectors.forget(hit.item.id, (), "a hole")
        assert await memory.vectors.missing([hit.item.id]) == {hit.item.id}
        await memory.search.search("importer3", scope=SCOPE)
        with anyio.fail_after(LIMIT_S):
            while await memory.vectors.missing([hit.item.id]):  # noqa: ASYNC110  nothing tells it
                await anyio.sleep(0.05)
        await both_arms(memory)
