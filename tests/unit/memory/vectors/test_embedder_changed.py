"""Another embedder than before, on the real index: it is made anew while words answer."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from memory.embeddings.choice import EmbedderChoice
from memory.embeddings.openai import Embeddings
from memory.episodes.episode import EpisodeDraft, Sections
from memory.items.scope import Scope
from memory.service.memory import Memory
from memory.vectors.indexer import VectorIndexer
from tests.support.memories import whole_memory
from tests.unit.memory.backends.memu_services import FakeEmbeddings, Reply, served, vector_of

SCOPE = Scope(owner_id="ada")
WAIT_S = 60
SAME = {"门禁": "badge"}
"""What the server's model takes for the same word."""


@asynccontextmanager
async def remembering(directory: Path, embedder: EmbedderChoice) -> AsyncIterator[Memory]:
    with anyio.fail_after(WAIT_S):
        async with whole_memory(directory, embedder=embedder) as memory:
            yield memory


async def settled(memory: Memory) -> VectorIndexer:
    assert memory.vectors is not None
    await memory.vectors.wait_settled()
    return memory.vectors


async def test_a_changed_embedder_embeds_everything_anew_while_words_answer(tmp_path: Path) -> None:
    go_on = threading.Event()

    def translated(texts: list[str]) -> Reply | None:
        if "badge" in str(texts):
            go_on.wait(WAIT_S)
        rows = [
            {"index": at, "embedding": vector_of(SAME.get(text, text))}
            for at, text in enumerate(texts)
        ]
        return 200, {"data": rows}

    async with remembering(tmp_path, EmbedderChoice(name="multilingual")) as memory:
        await write(memory, "badge", recipe="badge")
        await settled(memory)
    fake = FakeEmbeddings(translated)
    with served(fake.answer) as address:
        server = Embeddings(base_url=f"{address}/v1", model="BAAI/bge-m3:latest", api_key="k")
        choice = EmbedderChoice(name="openai", server=server)
        try:
            async with remembering(tmp_path, choice) as memory:
                meanwhile = await memory.search.search("badge", scope=SCOPE)
                assert [hit.item.title for hit in meanwhile.hits] == ["badge"]
                assert meanwhile.degraded == ("vector_rebuilding",)
                go_on.set()
                await settled(memory)
                found = await memory.search.search("门禁", scope=SCOPE)
                assert [hit.item.title for hit in found.hits] == ["badge"]
                assert "meaning" in found.hits[0].why
        finally:
            go_on.set()


async def test_a_server_that_is_down_leaves_words_and_is_named(tmp_path: Path) -> None:
    def down(*_: Any) -> Reply:
        return 401, {}

    with served(down) as address:
        server = Embeddings(base_url=address, model="m", api_key="sk-hidden")
        async with remembering(tmp_path, EmbedderChoice(name="openai", server=server)) as memory:
            await write(memory, "Badge")
            await settled(memory)
            found = await memory.search.search("badge gate", scope=SCOPE)
            assert [hit.item.title for hit in found.hits] == ["Badge"]
            assert found.degraded == ("vector_error",)
            (health,) = await memory.health()
            assert health.backend.state == "failing"
            assert "CANDOR_EMBEDDINGS_KEY" in str(health.backend.detail)
            assert "sk-hidden" not in str(health)


async def write(memory: Memory, title: str, recipe: str = "Show it at the gate.") -> str:
    sections = Sections(recipe=recipe)
    draft = EpisodeDraft(episode_type="howto", title=title, scope=SCOPE, sections=sections)
    return str((await memory.writer.write(draft)).episode_id)


async def test_without_an_embedder_the_index_and_what_waits_for_it_are_removed(
    tmp_path: Path,
) -> None:
    async with remembering(tmp_path, EmbedderChoice(name="multilingual")) as memory:
        badge = await write(memory, "badge")
        await settled(memory)
    async with remembering(tmp_path, EmbedderChoice(name="none")) as memory:
        key = await write(memory, "key")
        assert not await anyio.Path(tmp_path / "vectors").exists()
        assert await memory.database.rows("SELECT 1 FROM outbox") == []
        (health,) = await memory.health()
        assert (health.backend.name, health.backend.state) == ("vectors", "off")
    async with remembering(tmp_path, EmbedderChoice(name="multilingual")) as memory:
        assert await (await settled(memory)).missing([badge, key]) == set()
