"""The places of delivery that can be asked against their suite, and the suite against wrong ones."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest

from memory.backends.memu_cli import MemuCliBackend
from memory.backends.memu_embeddings import Embeddings
from memory.backends.memu_server import MemuServerBackend
from memory.items import Item
from memory.outbox.backend import Backend, BackendHealth, BackendUnavailable, DeliveryRefused
from memory.outbox.delivery import Link
from memory.scope import Scope
from tests.conformance.suites.backends import OpenBackend, Opening
from tests.conformance.suites.retrieving_backends import RetrievingSuite
from tests.unit.memory.backends.memu_services import (
    FakeEmbeddings,
    FakeMemuServer,
    served,
    vector_of,
)

FAILURES = (AssertionError, BackendUnavailable, DeliveryRefused, IndexError, KeyError)
TESTS = sorted(name for name in vars(RetrievingSuite) if name.startswith("test_"))


async def nothing_held(item_id: str) -> str:
    """Stand in for a look that this suite does not take."""
    await anyio.lowlevel.checkpoint()
    return item_id


@asynccontextmanager
async def closing(backend: Backend) -> AsyncIterator[OpenBackend]:
    try:
        yield OpenBackend(backend=backend, held=nothing_held)
    finally:
        await backend.close()


class TestMemuCli(RetrievingSuite):
    @pytest.fixture
    def open_backend(self, tmp_path: Path) -> Iterator[Opening]:
        with served(FakeEmbeddings().answer) as address:
            embeddings = Embeddings(base_url=f"{address}/v1", model="m")
            yield lambda: closing(MemuCliBackend(tmp_path / "memu", embeddings))


class TestMemuServer(RetrievingSuite):
    """The server that finds across all users, whoever is named."""

    @pytest.fixture
    def open_backend(self) -> Iterator[Opening]:
        async def no_wait(_: float) -> None:
            await anyio.lowlevel.checkpoint()

        with served(FakeMemuServer(looks=0).answer) as address:
            yield lambda: closing(MemuServerBackend(address, sleep=no_wait))


class InAFolder(Backend):
    """A right one, in a dictionary that lives as long as its test."""

    name = "folder"

    def __init__(self, kept: dict[str, Item]) -> None:
        self.kept = kept

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        await anyio.lowlevel.checkpoint()
        self.kept[item.id] = item
        return [Link(item_id=item.id, backend=self.name, remote_kind="file", remote_id=item.id)]

    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        await anyio.lowlevel.checkpoint()
        self.kept.pop(item_id, None)

    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        await anyio.lowlevel.checkpoint()
        if not query.strip():
            return []
        asked = vector_of(query)
        found = [
            (sum(a * b for a, b in zip(asked, vector_of(one.body), strict=True)), one.id)
            for one in self.kept.values()
            if one.scope.owner_id in scope.readable_owners
        ]
        return [name for _, name in sorted(found, reverse=True)][:limit]

    async def check(self) -> BackendHealth:
        await anyio.lowlevel.checkpoint()
        return BackendHealth(name=self.name, state="ok")

    async def close(self) -> None:
        await anyio.lowlevel.checkpoint()


class OfEverybody(InAFolder):
    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        owners = {one.scope.owner_id for one in self.kept.values()}
        found = [
            await super(OfEverybody, self).retrieve(query, Scope(owner_id=one), limit=limit)
            for one in sorted(owners)
        ]
        return [name for some in found for name in some][:limit]


class OfTheOwnerAlone(InAFolder):
    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        found = await super().retrieve(query, scope, limit=limit)
        return [one for one in found if self.kept[one].scope.owner_id == scope.owner_id]


class ForgettingNothing(InAFolder):
    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        await anyio.lowlevel.checkpoint()


class WorstFirst(InAFolder):
    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        found = await super().retrieve(query, scope, limit=100)
        return found[::-1][:limit]


class NamingAll(InAFolder):
    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        return await super().retrieve(query, scope, limit=100)


class NamingTwice(InAFolder):
    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        found = await super().retrieve(query, scope, limit=limit)
        return [one for one in found for _ in range(2)][:limit]


class AnsweringEveryQuestion(InAFolder):
    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        return await super().retrieve(query.strip() or "billing", scope, limit=limit)


class RememberingTheFirstLook(InAFolder):
    """Looks through what was there when it was first asked."""

    seen: dict[str, Item] | None = None

    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        if self.seen is None:
            self.seen = dict(self.kept)
        return await InAFolder(self.seen).retrieve(query, scope, limit=limit)


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
    def __init__(self, kept: dict[str, Item]) -> None:
        super().__init__(kept)
        self.kept = {}


WRONG: list[type[InAFolder]] = [
    OfEverybody,
    OfTheOwnerAlone,
    ForgettingNothing,
    WorstFirst,
    NamingAll,
    NamingTwice,
    AnsweringEveryQuestion,
    RememberingTheFirstLook,
    OneAtATime,
    EmptyAfterARestart,
]


def folder(make: Callable[[dict[str, Item]], Backend] = InAFolder) -> Opening:
    kept: dict[str, Item] = {}
    return lambda: closing(make(kept))


@pytest.mark.parametrize("test", TESTS)
async def test_the_suite_lets_a_right_backend_pass(test: str) -> None:
    await getattr(RetrievingSuite(), test)(folder())


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: one.__name__)
async def test_the_suite_catches_a_wrong_backend(wrong: Any) -> None:
    caught: list[str] = []
    for test in TESTS:
        try:
            await getattr(RetrievingSuite(), test)(folder(wrong))
        except (*FAILURES, ExceptionGroup):
            caught.append(test)
    assert caught
