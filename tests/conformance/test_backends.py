"""The backends against their suites, and the suites against deliberately wrong backends."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio.lowlevel
import anyio.to_thread
import pytest

from memory.embeddings.openai import Embeddings
from memory.embeddings.protocol import ThreadedEmbedder
from memory.errors import BackendUnavailable, DeliveryRefused
from memory.items.item import Item
from memory.items.scope import Scope
from memory.outbox.backend import Backend, BackendHealth
from memory.outbox.backends.memu_cli import MemuCliBackend
from memory.outbox.backends.memu_server import MemuServerBackend
from memory.outbox.delivery import Link
from memory.vectors.chroma import ChromaVectorIndex
from memory.vectors.indexer import IndexFiles, VectorIndexer
from memory.vectors.protocol import VectorIndex
from tests.conformance.suites.backends import BackendSuite, OpenBackend, Opening, RetrievingSuite
from tests.support.exact_index import ExactVectorIndex, Rows, sound
from tests.support.hashed_embedder import DIMENSION, HashedEmbedder
from tests.unit.memory.backends.memu_services import (
    FakeEmbeddings,
    FakeMemuServer,
    served,
    vector_of,
)

FAILURES = (
    *(AssertionError, pytest.fail.Exception, BackendUnavailable, DeliveryRefused),
    *(IndexError, KeyError, ExceptionGroup),
)


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


class OnMemuCli:
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


class OnMemuServer:
    """The server finds across all users, whoever is named."""

    @pytest.fixture
    def open_backend(self) -> Iterator[Opening]:
        server = FakeMemuServer(looks=2)
        with served(server.answer) as address:

            async def no_wait(_: float) -> None:
                await anyio.lowlevel.checkpoint()

            @asynccontextmanager
            async def opens() -> AsyncIterator[OpenBackend]:
                backend = MemuServerBackend(address, sleep=no_wait)

                async def held(item_id: str) -> str:
                    await anyio.lowlevel.checkpoint()
                    found = [item for item in server.items if item["agent_id"] == item_id]
                    return repr(found) if found else ""

                try:
                    yield OpenBackend(backend=backend, held=held)
                finally:
                    await backend.close()

            yield opens


class TestMemuCli(OnMemuCli, BackendSuite, RetrievingSuite):
    pass


class TestMemuServer(OnMemuServer, BackendSuite, RetrievingSuite):
    pass


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
        rows = Rows()  # empty, so that what the index holds came by delivery

        @asynccontextmanager
        async def opens() -> AsyncIterator[OpenBackend]:
            index = make(tmp_path)
            files = IndexFiles(open=lambda *_: index, is_sound=lambda *_: sound())
            keeper = VectorIndexer(files, ThreadedEmbedder(HashedEmbedder()), rows, rows)

            async def held(item_id: str) -> str:
                """Return how near an item is to a vector that is not far from any."""
                probe = [DIMENSION**-0.5] * DIMENSION
                hits = await index.nearest(probe, ["ann"], limit=10)
                found = [round(hit.similarity, 5) for hit in hits if hit.item_id == item_id]
                return repr(found) if found else ""

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(keeper.run)
                await keeper.wait_settled()
                try:
                    yield OpenBackend(backend=keeper, held=held)
                finally:
                    tasks.cancel_scope.cancel()
                    with anyio.CancelScope(shield=True):
                        await keeper.close()

        return opens


class InAFolder:
    """The simplest right one: the states of each item, kept while the test runs."""

    name = "simple"

    def __init__(self, kept: dict[str, list[Item]]) -> None:
        self.kept = kept

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        self.kept[item.id] = [item]
        return [Link(item_id=item.id, backend=self.name, remote_kind="file", remote_id=item.id)]

    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        self.kept.pop(item_id, None)

    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        await anyio.lowlevel.checkpoint()
        asked = vector_of(query)
        found = [
            (sum(a * b for a, b in zip(asked, vector_of(item.body), strict=True)), item.id)
            for (item, *_) in self.kept.values()
            if item.scope.owner_id in scope.readable_owners
        ]
        return [name for _, name in sorted(found, reverse=True)][:limit] if query.strip() else []

    async def check(self) -> BackendHealth:
        return BackendHealth(name=self.name, state="ok")

    async def close(self) -> None:
        """Nothing to close."""


def folder(make: Callable[[dict[str, list[Item]]], Backend] = InAFolder) -> Opening:
    kept: dict[str, list[Item]] = {}

    @asynccontextmanager
    async def opens() -> AsyncIterator[OpenBackend]:
        async def held(item_id: str) -> str:
            await anyio.lowlevel.checkpoint()
            states = kept.get(item_id, [])
            return repr([(state.summary, state.body) for state in states]) if states else ""

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


class ForgettingNothing(InAFolder):
    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        await anyio.lowlevel.checkpoint()


class ForgettingAll(InAFolder):
    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        await super().forget(item_id, links, idempotency_key)
        self.kept.clear()


class ForgettingOnce(InAFolder):
    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        del self.kept[item_id]


class WithoutLinks(InAFolder):
    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        await super().put(item, idempotency_key)
        return []


class UnderAnotherName(InAFolder):
    async def check(self) -> BackendHealth:
        return replace(await super().check(), name="another")


class OfEverybody(InAFolder):
    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        owners = {item.scope.owner_id for (item, *_) in self.kept.values()}
        found = [
            await super(OfEverybody, self).retrieve(query, Scope(owner_id=owner), limit=limit)
            for owner in sorted(owners)
        ]
        return [name for some in found for name in some][:limit]


class OfTheOwnerAlone(InAFolder):
    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        found = await super().retrieve(query, scope, limit=limit)
        return [hit for hit in found if self.kept[hit][0].scope.owner_id == scope.owner_id]


class WorstFirst(InAFolder):
    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        found = await super().retrieve(query, scope, limit=100)
        return found[::-1][:limit]


class NamingAll(InAFolder):
    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        return await super().retrieve(query, scope, limit=100)


class AnsweringEveryQuestion(InAFolder):
    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        return await super().retrieve(query.strip() or "billing", scope, limit=limit)


class OneAtATime(InAFolder):
    """Refuses whoever asks while another one does."""

    is_asked = False

    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        if self.is_asked:
            raise BackendUnavailable("busy")
        self.is_asked = True
        try:
            return await super().retrieve(query, scope, limit=limit)
        finally:
            self.is_asked = False


class EmptyAfterARestart(InAFolder):
    def __init__(self, kept: dict[str, list[Item]]) -> None:
        super().__init__(kept)
        self.kept = {}


WRONG: dict[type[Any], list[type[Any]]] = {
    BackendSuite: [
        Losing,
        Appending,
        ForgettingNothing,
        ForgettingAll,
        ForgettingOnce,
        WithoutLinks,
        UnderAnotherName,
    ],
    RetrievingSuite: [
        OfEverybody,
        OfTheOwnerAlone,
        ForgettingNothing,
        WorstFirst,
        NamingAll,
        AnsweringEveryQuestion,
        OneAtATime,
        EmptyAfterARestart,
    ],
}


async def failing(suite: type[Any], make: Any) -> list[str]:
    """Return the tests of a suite that fail on a backend."""
    failed: list[str] = []
    for test in sorted(name for name in vars(suite) if name.startswith("test_")):
        try:
            await getattr(suite(), test)(folder(make))
        except FAILURES:
            failed.append(test)
    return failed


@pytest.mark.parametrize("suite", WRONG)
async def test_the_suite_lets_a_right_backend_pass_and_catches_each_wrong_one(
    suite: type[Any],
) -> None:
    assert await failing(suite, InAFolder) == []
    assert [wrong for wrong in WRONG[suite] if not await failing(suite, wrong)] == []
