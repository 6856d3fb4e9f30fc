"""The places of delivery against their suite, and the suite against deliberately wrong ones."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio.lowlevel
import anyio.to_thread
import pytest

from memory.backends.memu_cli import MemuCliBackend
from memory.backends.memu_embeddings import Embeddings
from memory.backends.memu_server import MemuServerBackend
from memory.embeddings.hashed import DIMENSION, HashedEmbedder
from memory.items import Item
from memory.itemstore import NumberedItem
from memory.outbox.backend import Backend, BackendHealth, BackendUnavailable, DeliveryRefused
from memory.outbox.delivery import Link
from memory.vectors.chroma import ChromaVectorIndex
from memory.vectors.exact import ExactVectorIndex
from memory.vectors.keeper import VectorKeeper
from memory.vectors.protocol import VectorIndex
from memory.vectors.state import IndexState
from tests.conformance.suites.backends import BackendSuite, OpenBackend, Opening
from tests.unit.memory.backends.memu_services import FakeEmbeddings, FakeMemuServer, served

FAILURES = (AssertionError, pytest.fail.Exception, BackendUnavailable, DeliveryRefused, KeyError)
TESTS = sorted(name for name in vars(BackendSuite) if name.startswith("test_"))


def held_in_file_blocking(file: Path, item_id: str) -> str:
    """Read memU's own tables, past everything of ours."""
    with closing(sqlite3.connect(file)) as connection:
        files = connection.execute(
            "SELECT name, description, content FROM memu_recall_files WHERE agent_id = ?",
            (item_id,),
        ).fetchall()
        segments = connection.execute(
            "SELECT text FROM memu_recall_file_segments WHERE agent_id = ? ORDER BY text",
            (item_id,),
        ).fetchall()
    return repr([files, segments]) if files or segments else ""


class TestMemuCli(BackendSuite):
    @pytest.fixture
    def open_backend(self, tmp_path: Path) -> Iterator[Opening]:
        with served(FakeEmbeddings().answer) as address:

            @asynccontextmanager
            async def opens() -> AsyncIterator[OpenBackend]:
                backend = MemuCliBackend(
                    tmp_path / "memu", Embeddings(base_url=f"{address}/v1", model="m")
                )

                async def held(item_id: str) -> str:
                    return await anyio.to_thread.run_sync(
                        held_in_file_blocking, tmp_path / "memu" / "memu.sqlite3", item_id
                    )

                try:
                    yield OpenBackend(backend=backend, held=held)
                finally:
                    await backend.close()

            yield opens


@contextmanager
def memu_server() -> Iterator[Opening]:
    server = FakeMemuServer(looks=2)
    with served(server.answer) as address:

        async def no_wait(_: float) -> None:
            await anyio.lowlevel.checkpoint()

        @asynccontextmanager
        async def opens() -> AsyncIterator[OpenBackend]:
            backend = MemuServerBackend(address, sleep=no_wait)

            async def held(item_id: str) -> str:
                await anyio.lowlevel.checkpoint()
                found = [one for one in server.items if one["agent_id"] == item_id]
                return repr(found) if found else ""

            try:
                yield OpenBackend(backend=backend, held=held)
            finally:
                await backend.close()

        yield opens


class TestMemuServer(BackendSuite):
    @pytest.fixture
    def open_backend(self) -> Iterator[Opening]:
        with memu_server() as opens:
            yield opens


class NoItems:
    """An empty store, so that what the index holds came by delivery; and the state of the index."""

    def __init__(self) -> None:
        self.state: IndexState | None = None

    async def after(self, seq: int, limit: int) -> list[NumberedItem]:
        del seq, limit
        await anyio.lowlevel.checkpoint()
        return []

    async def get(self) -> IndexState | None:
        await anyio.lowlevel.checkpoint()
        return self.state

    async def put(self, state: IndexState) -> None:
        await anyio.lowlevel.checkpoint()
        self.state = state

    async def expected_count(self, backend: str) -> int:
        del backend
        await anyio.lowlevel.checkpoint()
        return 0


async def is_sound() -> bool:
    await anyio.lowlevel.checkpoint()
    return True


MakeIndex = Callable[[Path], VectorIndex]


def chroma(directory: Path) -> VectorIndex:
    return ChromaVectorIndex(directory / "vectors", model_id="hashed-1", dimension=DIMENSION)


def exact() -> MakeIndex:
    index = ExactVectorIndex(DIMENSION)
    return lambda _: index


class TestVectors(BackendSuite):
    @pytest.fixture(params=["exact", "chroma"])
    def open_backend(self, tmp_path: Path, request: pytest.FixtureRequest) -> Opening:
        make = chroma if request.param == "chroma" else exact()
        rows = NoItems()

        @asynccontextmanager
        async def opens() -> AsyncIterator[OpenBackend]:
            index = make(tmp_path)
            keeper = VectorKeeper(
                index, HashedEmbedder(), rows, rows, is_sound=is_sound, least_similarity=0.2
            )

            async def held(item_id: str) -> str:
                """Tell how near an item is to a vector that is not far from any."""
                probe = [DIMENSION**-0.5] * DIMENSION
                hits = await index.nearest(probe, ["ann"], limit=10)
                found = [round(one.similarity, 5) for one in hits if one.item_id == item_id]
                return repr(found) if found else ""

            async with anyio.create_task_group() as tasks:
                await tasks.start(keeper.run)
                await keeper.wait_settled()
                try:
                    yield OpenBackend(backend=keeper, held=held)
                finally:
                    tasks.cancel_scope.cancel()
                    with anyio.CancelScope(shield=True):
                        await keeper.close()

        return opens


class InAFolder:
    """The simplest right one: a list of texts an item, kept while the test runs."""

    name = "simple"

    def __init__(self, kept: dict[str, list[str]]) -> None:
        self.kept = kept

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        await anyio.lowlevel.checkpoint()
        self.kept[item.id] = [item.summary, item.body]
        return [Link(item_id=item.id, backend=self.name, remote_kind="file", remote_id=item.id)]

    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        await anyio.lowlevel.checkpoint()
        self.kept.pop(item_id, None)

    async def check(self) -> BackendHealth:
        await anyio.lowlevel.checkpoint()
        return BackendHealth(name=self.name, state="ok")

    async def close(self) -> None:
        await anyio.lowlevel.checkpoint()


def folder(make: Callable[[dict[str, list[str]]], Backend] = InAFolder) -> Opening:
    kept: dict[str, list[str]] = {}

    @asynccontextmanager
    async def opens() -> AsyncIterator[OpenBackend]:
        async def held(item_id: str) -> str:
            await anyio.lowlevel.checkpoint()
            return repr(kept[item_id]) if kept.get(item_id) else ""

        yield OpenBackend(backend=make(kept), held=held)

    return opens


class Losing(InAFolder):
    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        links = await super().put(item, idempotency_key)
        self.kept.clear()
        return links


class Appending(InAFolder):
    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        before = self.kept.get(item.id, [])
        links = await super().put(item, idempotency_key)
        self.kept[item.id] += before
        return links


class RememberingKeysInMemory(Appending):
    """Knows a key again, until it is restarted."""

    def __init__(self, kept: dict[str, list[str]]) -> None:
        super().__init__(kept)
        self.keys: dict[str, Sequence[Link]] = {}

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        if idempotency_key not in self.keys:
            self.keys[idempotency_key] = await super().put(item, idempotency_key)
        return self.keys[idempotency_key]


class KeepingTheFirst(InAFolder):
    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        before = self.kept.get(item.id)
        links = await super().put(item, idempotency_key)
        self.kept[item.id] = before or self.kept[item.id]
        return links


class ForgettingNothing(InAFolder):
    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        await anyio.lowlevel.checkpoint()


class ForgettingAll(InAFolder):
    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        await super().forget(item_id, links, idempotency_key)
        self.kept.clear()


class ForgettingByLinksAlone(InAFolder):
    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        for one in links:
            await super().forget(one.remote_id, links, idempotency_key)


class ForgettingOnce(InAFolder):
    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        await anyio.lowlevel.checkpoint()
        del self.kept[item_id]


class WithoutLinks(InAFolder):
    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        await super().put(item, idempotency_key)
        return []


class LinksOfAnother(InAFolder):
    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        links = await super().put(item, idempotency_key)
        return [replace(one, item_id="epi_other") for one in links]


class UnderAnotherName(InAFolder):
    async def check(self) -> BackendHealth:
        return replace(await super().check(), name="another")


WRONG: list[Any] = [
    Losing,
    Appending,
    RememberingKeysInMemory,
    KeepingTheFirst,
    ForgettingNothing,
    ForgettingAll,
    ForgettingByLinksAlone,
    ForgettingOnce,
    WithoutLinks,
    LinksOfAnother,
    UnderAnotherName,
]


@pytest.mark.parametrize("test", TESTS)
async def test_the_suite_lets_a_right_backend_pass(test: str) -> None:
    await getattr(BackendSuite(), test)(folder())


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: one.__name__)
async def test_the_suite_catches_a_wrong_backend(wrong: Any) -> None:
    caught: list[str] = []
    for test in TESTS:
        try:
            await getattr(BackendSuite(), test)(folder(wrong))
        except FAILURES:
            caught.append(test)
    assert caught
