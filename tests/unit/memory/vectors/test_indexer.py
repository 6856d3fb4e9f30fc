"""The indexer on the exact index, where each moment is in the test's hand; Chroma has its own tests."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from memory.embeddings.protocol import ThreadedEmbedder, Vector
from memory.errors import BackendResting, BackendUnavailable
from memory.items.item import KINDS
from memory.items.scope import Scope
from memory.items.store import NumberedItem
from memory.outbox.backend import BackendHealth
from memory.recall.retrievers import Question, RetrieverAnswer
from memory.vectors.indexer import IndexFiles, VectorIndexer
from memory.vectors.protocol import IndexState, IndexUnavailable, VectorEntry
from tests.support.exact_index import ADA, ExactVectorIndex, Rows, sound
from tests.support.hashed_embedder import DIMENSION, HashedEmbedder
from tests.support.recall import make_item

COFFEE = make_item("epi_9", "coffee", scope=ADA)


class Fragile(ExactVectorIndex):
    """An index that can be broken; `clear` mends it."""

    def __init__(self) -> None:
        super().__init__(DIMENSION)
        self.is_broken = False
        self.cleared = 0

    def __getattribute__(self, name: str) -> Any:
        if name in {"put", "remove", "nearest", "count", "missing"} and self.is_broken:
            raise IndexUnavailable("It is broken.")
        return super().__getattribute__(name)

    async def clear(self) -> None:
        self.is_broken = False
        self.cleared += 1
        await super().clear()


def kept(
    index: ExactVectorIndex, rows: Rows, is_sound: Callable[[], Awaitable[bool]] = sound
) -> VectorIndexer:
    files = IndexFiles(open=lambda *_: index, is_sound=lambda *_: is_sound())
    embedder = ThreadedEmbedder(HashedEmbedder())
    return VectorIndexer(files, embedder, rows, rows)


@asynccontextmanager
async def running(indexer: VectorIndexer) -> AsyncIterator[VectorIndexer]:
    """Run an indexer while the block runs, from when it has settled."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(indexer.run)
        await settled(indexer)
        yield indexer
        tasks.cancel_scope.cancel()


async def settled(indexer: VectorIndexer) -> None:
    with anyio.fail_after(30):
        await indexer.wait_settled()


async def test_an_index_that_never_was_is_made_of_all_items_and_until_then_the_search_says_so() -> (
    None
):
    rows = Rows("nightly import failed", "green tea", *(f"invoice {n}" for n in range(120)))
    indexer = kept(Fragile(), rows)
    answer = await indexer.find(asked("tea"), limit=5)
    assert (list(answer.candidates), list(answer.degraded)) == ([], ["vector_rebuilding"])
    assert (await indexer.check()).state == "rebuilding"
    async with running(indexer):
        assert (await found(indexer, "why did the nightly import fail"))[0] == "epi_1"
    assert rows.state == IndexState(
        model_id="hashed-1", dimension=DIMENSION, built_to=122, complete=True
    )


async def test_one_that_is_whole_is_left_as_it_is_also_with_an_item_without_words() -> None:
    rows, index = Rows("tea", "🙂"), Fragile()
    async with running(kept(index, rows)):
        cleared = index.cleared
    async with running(kept(index, rows)) as second:
        assert await found(second, "tea") == ["epi_1"]
    assert index.cleared == cleared


async def test_a_rebuild_that_was_cut_off_goes_on_where_it_was() -> None:
    rows, index = Rows("tea", "milk"), Fragile()
    await index.put([])
    rows.state = IndexState(model_id="hashed-1", dimension=DIMENSION, built_to=1)
    async with running(kept(index, rows)):
        assert index.cleared == 0
    assert rows.read_from[0] == 1


def asked(text: str, owner_id: str = "ada") -> Question:
    return Question(text=text, scope=Scope(owner_id=owner_id), kinds=KINDS)


async def found(indexer: VectorIndexer, text: str) -> list[str]:
    answer = await indexer.find(asked(text), limit=5)
    assert answer.degraded == ()
    return [candidate.item_id for candidate in answer.candidates]


async def unsound() -> bool:
    await anyio.lowlevel.checkpoint()
    return False


WHOLE = IndexState(model_id="hashed-1", dimension=DIMENSION, built_to=1, complete=True)


@pytest.mark.parametrize(
    ("state", "is_sound"),
    [
        (replace(WHOLE, model_id="other"), sound),
        (replace(WHOLE, dimension=7), sound),
        (WHOLE, sound),
        (WHOLE, unsound),
    ],
    ids=["model", "dimension", "short of items", "unsound"],
)
async def test_one_that_cannot_be_used_is_made_anew(
    state: IndexState, is_sound: Callable[[], Awaitable[bool]]
) -> None:
    rows, index = Rows("tea"), Fragile()
    rows.state = state
    async with running(kept(index, rows, is_sound)) as indexer:
        assert await found(indexer, "tea") == ["epi_1"]
    assert index.cleared == 1


class Watched(Fragile):
    """Writes down what is done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    async def put(self, entries: Sequence[VectorEntry]) -> None:
        self.done.append("put")
        await super().put(entries)

    async def close(self) -> None:
        self.done.append("close")


async def test_while_another_process_tries_the_index_it_is_closed_and_nothing_is_written() -> None:
    rows, index = Rows("tea"), Watched()
    rows.state, tried = WHOLE, anyio.Event()

    async def is_sound() -> bool:
        assert index.done == ["close"]
        tried.set()
        await anyio.wait_all_tasks_blocked()
        index.done.append("tried")
        return True

    indexer = kept(index, rows, is_sound)

    async def put() -> None:
        await tried.wait()
        await indexer.put(COFFEE, "k")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(put)
        async with running(indexer):
            assert index.done[:3] == ["close", "tried", "put"]


async def finds(indexer: VectorIndexer) -> None:
    answer = await indexer.find(asked("tea"), limit=5)
    assert list(answer.degraded) == ["vector_error"]


async def lacks(indexer: VectorIndexer) -> None:
    assert await indexer.missing(["epi_9"]) == set()


async def takes(indexer: VectorIndexer) -> None:
    with pytest.raises(BackendUnavailable):
        await indexer.put(COFFEE, "k")


@pytest.mark.parametrize("use", [finds, lacks, takes])
async def test_one_that_breaks_is_told_and_made_anew(
    use: Callable[[VectorIndexer], Awaitable[None]],
) -> None:
    index = Fragile()
    async with running(kept(index, Rows("tea"))) as indexer:
        index.is_broken = True
        await use(indexer)
        await settled(indexer)
        assert index.cleared == 2
        await indexer.put(COFFEE, "k")
        assert await found(indexer, "tea") == ["epi_1"]
        assert await found(indexer, "coffee") == ["epi_9"]


async def test_it_tells_what_it_lacks_only_while_it_is_whole() -> None:
    rows, index = Rows("tea", "milk"), Fragile()
    indexer = kept(index, rows)
    assert await indexer.missing(["epi_1", "epi_9"]) == set()
    async with running(indexer):
        assert await indexer.missing(["epi_1", "epi_9"]) == {"epi_9"}
        await index.remove(["epi_1"])
        assert await indexer.missing(["epi_1", "epi_9"]) == {"epi_1", "epi_9"}


async def test_what_is_far_from_the_question_is_not_found() -> None:
    async with running(kept(Fragile(), Rows("green tea with milk"))) as indexer:
        assert await found(indexer, "database backup at night") == []
        assert await found(indexer, "???") == []


class Remote:
    """An embedder whose model may change behind its name, and which may not answer."""

    model_id = "remote"

    def __init__(self) -> None:
        self.width = DIMENSION
        self.fault: BackendUnavailable | None = None

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        await anyio.lowlevel.checkpoint()
        if self.fault is not None:
            raise self.fault
        made = HashedEmbedder().embed_blocking(texts)
        return [vector[: self.width] + [0.0] * (self.width - DIMENSION) for vector in made]

    async def embed_question(self, text: str) -> Vector:
        return (await self.embed([text]))[0]

    async def close(self) -> None:
        """Close nothing."""


async def test_a_server_that_fails_leaves_words_and_is_told_until_it_answers() -> None:
    remote, rows = Remote(), Rows("green tea")
    files = IndexFiles(open=lambda *_: Fragile(), is_sound=lambda *_: sound())
    indexer = VectorIndexer(files, remote, rows, rows)
    async with running(indexer):
        assert await found(indexer, "green tea") == ["epi_1"]
        for fault, degraded in (
            (BackendUnavailable, "vector_error"),
            (BackendResting, "breaker_open"),
        ):
            remote.fault = fault("It is down.")
            answer = await indexer.find(asked("green tea"), limit=9)
            assert (answer.candidates, answer.degraded) == ((), (degraded,))
            assert await indexer.check() == BackendHealth(
                name="vectors", state="failing", detail="It is down."
            )
            with pytest.raises(BackendUnavailable):
                await indexer.put(COFFEE, "k")
        remote.fault = None
        assert await found(indexer, "green tea") == ["epi_1"]
        assert (await indexer.check()).state == "ok"


async def test_no_model_is_waited_for_where_nothing_is_stored() -> None:
    class Loading(Remote):
        async def embed_question(self, text: str) -> Vector:
            await anyio.sleep_forever()
            return await super().embed_question(text)

    rows = Rows()
    files = IndexFiles(open=lambda *_: Fragile(), is_sound=lambda *_: sound())
    async with running(VectorIndexer(files, Loading(), rows, rows)) as indexer:
        with anyio.fail_after(30):
            assert await indexer.find(asked("tea"), limit=5) == RetrieverAnswer()
        rows.items = Rows("green tea").items
        with anyio.move_on_after(0.05) as waiting:
            await indexer.find(asked("tea"), limit=5)
        assert waiting.cancelled_caught


async def test_vectors_of_another_dimension_mean_another_model_and_the_index_is_made_anew() -> None:
    remote, rows = Remote(), Rows("green tea", "blue whale")
    made: list[int] = []

    def open_index(_: str, dimension: int) -> ExactVectorIndex:
        made.append(dimension)
        return ExactVectorIndex(dimension)

    files = IndexFiles(open=open_index, is_sound=lambda *_: sound())
    indexer = VectorIndexer(files, remote, rows, rows)
    async with running(indexer):
        remote.width = DIMENSION + 8
        answer = await indexer.find(asked("green tea"), limit=9)
        assert answer.degraded == ("vector_error",)
        await settled(indexer)
        assert await found(indexer, "green tea") == ["epi_1"]
        assert made == [DIMENSION, DIMENSION + 8]
        assert rows.state is not None
        assert (rows.state.dimension, rows.state.complete) == (DIMENSION + 8, True)


async def test_what_is_forgotten_between_reading_and_adding_it_does_not_come_back() -> None:
    read, go_on = anyio.Event(), anyio.Event()

    class Slow(Rows):
        async def after(self, seq: int, limit: int) -> list[NumberedItem]:
            some = await super().after(seq, limit)
            read.set()
            await go_on.wait()
            return some

    index, rows = Fragile(), Slow("blue whale", "green tea")
    indexer = kept(index, rows)

    async def forget() -> None:
        await read.wait()
        del rows.items[1]
        tasks.start_soon(indexer.forget, "epi_1", (), "key")
        await anyio.wait_all_tasks_blocked()
        go_on.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(forget)
        async with running(indexer):
            pass
    assert await index.missing(["epi_1", "epi_2"]) == {"epi_1"}


async def test_a_server_searches_the_index_that_another_one_makes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memory.vectors.indexer._FOLLOW_S", 0.01)
    rows, index = Rows("green tea"), Fragile()
    follower = kept(index, rows)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follower.follow)
        await anyio.wait_all_tasks_blocked()
        assert (await follower.find(asked("tea"), limit=5)).degraded == ("vector_rebuilding",)
        assert (index.cleared, rows.state) == (0, None)
        async with running(kept(index, rows)):
            await settled(follower)
            assert await found(follower, "tea") == ["epi_1"]
        assert index.cleared == 1
        assert rows.state is not None
        rows.state = replace(rows.state, model_id="hashed-2")
        with anyio.fail_after(30):
            while (await follower.check()).state != "rebuilding":  # noqa: ASYNC110  no signal
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
