"""The keeper on the exact index, where each moment is in the test's hand; Chroma has its own tests."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import anyio
import pytest

from memory.embeddings.hashed import DIMENSION, HashedEmbedder
from memory.embeddings.protocol import Vector
from memory.items import KINDS, Item
from memory.itemstore import NumberedItem
from memory.outbox.backend import BackendUnavailable
from memory.recall.retrievers import Question
from memory.scope import Scope
from memory.vectors.exact import ExactVectorIndex
from memory.vectors.keeper import VectorKeeper
from memory.vectors.protocol import IndexUnavailable, VectorEntry, VectorHit
from memory.vectors.state import IndexState

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def item(item_id: str, text: str, owner_id: str = "ada") -> Item:
    return Item(
        id=item_id,
        kind="episode",
        scope=Scope(owner_id=owner_id),
        title=text,
        summary=text,
        body=text,
        source="a test",
        occurred_at=NOW,
        updated_at=NOW,
    )


class Rows:
    """The items that are stored, and the state that is written down."""

    def __init__(self, *texts: str) -> None:
        self.items = {n: item(f"epi_{n}", text) for n, text in enumerate(texts, start=1)}
        self.state: IndexState | None = None
        self.states: list[IndexState] = []
        self.read_from: list[int] = []

    async def after(self, seq: int, limit: int) -> list[NumberedItem]:
        self.read_from.append(seq)
        found = [NumberedItem(seq=n, item=one) for n, one in self.items.items() if n > seq]
        return found[:limit]

    async def get(self) -> IndexState | None:
        return self.state

    async def put(self, state: IndexState) -> None:
        self.state = state
        self.states.append(state)

    async def expected_count(self, backend: str) -> int:
        return len(self.items)


class Fragile(ExactVectorIndex):
    """An index that can be broken; `clear` mends it."""

    def __init__(self) -> None:
        super().__init__(DIMENSION)
        self.is_broken = False
        self.cleared = 0

    def _use(self) -> None:
        if self.is_broken:
            raise IndexUnavailable("It is broken.")

    async def put(self, entries: Sequence[VectorEntry]) -> None:
        self._use()
        await super().put(entries)

    async def remove(self, item_ids: Sequence[str]) -> None:
        self._use()
        await super().remove(item_ids)

    async def nearest(
        self, vector: Vector, owner_ids: Sequence[str], *, limit: int
    ) -> Sequence[VectorHit]:
        self._use()
        return await super().nearest(vector, owner_ids, limit=limit)

    async def count(self) -> int:
        self._use()
        return await super().count()

    async def missing(self, item_ids: Sequence[str]) -> set[str]:
        self._use()
        return await super().missing(item_ids)

    async def clear(self) -> None:
        self.is_broken = False
        self.cleared += 1
        await super().clear()


async def sound() -> bool:
    await anyio.lowlevel.checkpoint()
    return True


def kept(
    index: ExactVectorIndex, rows: Rows, is_sound: Callable[[], Awaitable[bool]] = sound
) -> VectorKeeper:
    return VectorKeeper(
        index, HashedEmbedder(), rows, rows, is_sound=is_sound, least_similarity=0.2
    )


@asynccontextmanager
async def running(keeper: VectorKeeper) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        await tasks.start(keeper.run)
        yield
        tasks.cancel_scope.cancel()


async def settled(keeper: VectorKeeper) -> None:
    with anyio.fail_after(5):
        await keeper.wait_settled()


def asked(text: str, owner_id: str = "ada") -> Question:
    return Question(text=text, scope=Scope(owner_id=owner_id), kinds=KINDS)


async def found(keeper: VectorKeeper, text: str) -> list[str]:
    answer = await keeper.find(asked(text), limit=5)
    assert answer.degraded == ()
    return [one.item_id for one in answer.candidates]


async def test_an_index_that_never_was_is_made_of_all_items() -> None:
    rows = Rows("nightly import failed", "green tea", *(f"invoice {n}" for n in range(120)))
    keeper = kept(Fragile(), rows)
    async with running(keeper):
        await settled(keeper)
        assert (await found(keeper, "why did the nightly import fail"))[0] == "epi_1"
    assert rows.state == IndexState(
        model_id="hashed-1", dimension=DIMENSION, built_to=122, complete=True
    )


async def test_until_it_is_made_the_search_says_so() -> None:
    keeper = kept(Fragile(), Rows("tea"))
    answer = await keeper.find(asked("tea"), limit=5)
    assert (list(answer.candidates), list(answer.degraded)) == ([], ["vector_rebuilding"])
    assert (await keeper.check()).state == "rebuilding"


async def test_one_that_is_whole_is_left_as_it_is() -> None:
    rows, index = Rows("tea"), Fragile()
    async with running(first := kept(index, rows)):
        await settled(first)
    cleared = index.cleared
    async with running(second := kept(index, rows)):
        await settled(second)
        assert await found(second, "tea") == ["epi_1"]
    assert index.cleared == cleared


async def test_a_rebuild_that_was_cut_off_goes_on_where_it_was() -> None:
    rows, index = Rows("tea", "milk"), Fragile()
    await index.put([])
    rows.state = IndexState(model_id="hashed-1", dimension=DIMENSION, built_to=1)
    async with running(keeper := kept(index, rows)):
        await settled(keeper)
    assert index.cleared == 0
    assert rows.read_from[0] == 1


@pytest.mark.parametrize(
    "state",
    [
        IndexState(model_id="other", dimension=DIMENSION, built_to=1, complete=True),
        IndexState(model_id="hashed-1", dimension=7, built_to=1, complete=True),
    ],
    ids=["model", "dimension"],
)
async def test_one_of_another_model_is_made_anew(state: IndexState) -> None:
    rows, index = Rows("tea"), Fragile()
    rows.state = state
    async with running(keeper := kept(index, rows)):
        await settled(keeper)
        assert await found(keeper, "tea") == ["epi_1"]
    assert index.cleared == 1


async def test_one_that_is_short_of_items_is_made_anew() -> None:
    rows, index = Rows("tea", "milk"), Fragile()
    rows.state = IndexState(model_id="hashed-1", dimension=DIMENSION, built_to=2, complete=True)
    async with running(keeper := kept(index, rows)):
        await settled(keeper)
        assert await found(keeper, "milk") == ["epi_2"]


async def test_one_that_is_not_sound_is_not_even_opened() -> None:
    rows, index = Rows("tea"), Fragile()
    rows.state = IndexState(model_id="hashed-1", dimension=DIMENSION, built_to=1, complete=True)

    async def unsound() -> bool:
        await anyio.lowlevel.checkpoint()
        return False

    async with running(keeper := kept(index, rows, unsound)):
        await settled(keeper)
        assert await found(keeper, "tea") == ["epi_1"]
    assert index.cleared == 1


async def test_one_that_breaks_is_told_and_made_anew() -> None:
    rows, index = Rows("tea"), Fragile()
    async with running(keeper := kept(index, rows)):
        await settled(keeper)
        index.is_broken = True
        answer = await keeper.find(asked("tea"), limit=5)
        assert list(answer.degraded) == ["vector_error"]
        await settled(keeper)
        assert await found(keeper, "tea") == ["epi_1"]


async def test_it_tells_what_it_lacks_only_while_it_is_whole() -> None:
    rows, index = Rows("tea", "milk"), Fragile()
    keeper = kept(index, rows)
    assert await keeper.missing(["epi_1", "epi_9"]) == set()
    async with running(keeper):
        await settled(keeper)
        assert await keeper.missing(["epi_1", "epi_9"]) == {"epi_9"}
        await index.remove(["epi_1"])
        assert await keeper.missing(["epi_1", "epi_9"]) == {"epi_1", "epi_9"}


async def test_one_that_cannot_tell_what_it_lacks_is_made_anew() -> None:
    rows, index = Rows("tea"), Fragile()
    async with running(keeper := kept(index, rows)):
        await settled(keeper)
        index.is_broken = True
        assert await keeper.missing(["epi_1"]) == set()
        await settled(keeper)
        assert index.cleared == 2
        assert await keeper.missing(["epi_1"]) == set()
        assert await found(keeper, "tea") == ["epi_1"]


async def test_a_delivery_to_a_broken_one_is_for_later_and_it_is_mended() -> None:
    rows, index = Rows("tea"), Fragile()
    async with running(keeper := kept(index, rows)):
        await settled(keeper)
        index.is_broken = True
        with pytest.raises(BackendUnavailable):
            await keeper.put(item("epi_9", "coffee"), "k")
        await settled(keeper)
        await keeper.put(item("epi_9", "coffee"), "k")
        assert await found(keeper, "coffee") == ["epi_9"]


async def test_what_is_forgotten_while_it_is_made_does_not_come_back() -> None:
    """The batch that was read before the forgetting is written before it, too."""
    rows, index = Rows(*(f"tea {n}" for n in range(60))), Fragile()
    keeper = kept(index, rows)
    async with running(keeper):
        del rows.items[3]
        await keeper.forget("epi_3", [], "k")
        await settled(keeper)
    assert "epi_3" not in index._entries  # noqa: SLF001  what is really in it
    assert len(index._entries) == 59  # noqa: SLF001


async def test_what_is_far_from_the_question_is_not_found() -> None:
    rows = Rows("green tea with milk")
    async with running(keeper := kept(Fragile(), rows)):
        await settled(keeper)
        assert await found(keeper, "database backup at night") == []
        assert await found(keeper, "???") == []


async def test_anothers_items_are_not_found() -> None:
    rows = Rows("green tea")
    async with running(keeper := kept(Fragile(), rows)):
        await settled(keeper)
        answer = await keeper.find(asked("green tea", "bob"), limit=5)
        assert list(answer.candidates) == []


async def test_an_item_without_words_is_counted_all_the_same() -> None:
    rows, index = Rows("🙂", "tea"), Fragile()
    async with running(first := kept(index, rows)):
        await settled(first)
    async with running(second := kept(index, rows)):
        await settled(second)
    assert index.cleared == 1


async def test_a_delivery_names_the_vector_that_came_of_it() -> None:
    async with running(keeper := kept(Fragile(), Rows())):
        await settled(keeper)
        (link,) = await keeper.put(item("epi_1", "tea"), "k")
    assert (link.backend, link.remote_kind, link.remote_id) == ("vectors", "vector", "epi_1")


async def test_what_is_forgotten_between_reading_and_adding_it_does_not_come_back() -> None:
    read, go_on = anyio.Event(), anyio.Event()

    class Slow(Rows):
        async def after(self, seq: int, limit: int) -> list[NumberedItem]:
            some = await super().after(seq, limit)
            read.set()
            await go_on.wait()
            return some

    index, rows = Fragile(), Slow("blue whale", "green tea")
    keeper = kept(index, rows)
    async with running(keeper), anyio.create_task_group() as tasks:
        with anyio.fail_after(5):
            await read.wait()
            del rows.items[1]
            tasks.start_soon(keeper.forget, "epi_1", (), "key")
            await anyio.wait_all_tasks_blocked()
            go_on.set()
        await settled(keeper)
    assert await index.missing(["epi_1", "epi_2"]) == {"epi_1"}
