"""memU through the whole of recall: delivered by the outbox, asked by the reader, both kinds of it."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from memory.clock import utc_now
from memory.embeddings.choice import EmbedderChoice
from memory.embeddings.openai import Embeddings
from memory.episodes.episode import EpisodeDraft, Sections
from memory.items.scope import Scope
from memory.outbox.backend import Backend, BackendHealth
from memory.outbox.backends.memu_cli import MemuCliBackend
from memory.outbox.backends.memu_server import MemuServerBackend
from memory.recall.query import ContextPack, QueryPack
from memory.remote.breaker import BreakerState
from memory.service import assemble
from memory.service.memory import Memory
from memory.service.plan import MemoryEvents
from tests.support.memories import whole_memory
from tests.unit.memory.backends.memu_services import FakeEmbeddings, FakeMemuServer, served

ANN = Scope(owner_id="ann")
WAIT_S = 60


@dataclass
class Kind:
    """memU of one kind, and a way to have it fail."""

    backend: Callable[[Path], Backend]
    fail: Callable[[], None]
    asked: Callable[[], str]
    """All that it was sent."""


@contextmanager
def cli() -> Iterator[Kind]:
    endpoint = FakeEmbeddings()

    def fail() -> None:
        endpoint.instead = lambda _: (503, {})

    with served(endpoint.answer) as address:
        embeddings = Embeddings(base_url=f"{address}/v1", model="m")
        yield Kind(
            lambda directory: MemuCliBackend(directory / "memu", embeddings),
            fail,
            lambda: repr(endpoint.asked),
        )


@contextmanager
def server() -> Iterator[Kind]:
    memu = FakeMemuServer(looks=0)

    def fail() -> None:
        memu.instead = lambda _, path: (500, {}) if path == "/retrieve" else None

    async def no_wait(_: float) -> None:
        await anyio.lowlevel.checkpoint()

    with served(memu.answer) as address:
        yield Kind(
            lambda _: MemuServerBackend(address, sleep=no_wait), fail, lambda: repr(memu.asked)
        )


@pytest.fixture(params=[cli, server], ids=["package", "server"])
def kind(request: pytest.FixtureRequest) -> Iterator[Kind]:
    with request.param() as made:
        yield made


@asynccontextmanager
async def opened(
    directory: Path, *backends: Backend, events: MemoryEvents | None = None
) -> AsyncIterator[Memory]:
    with anyio.fail_after(WAIT_S):
        async with whole_memory(
            directory,
            events=events,
            mask=lambda text: text.replace("hunter2", "[masked]"),
            embedder=EmbedderChoice(),
            backends=backends,
            serves_vectors=False,
        ) as memory:
            yield memory


def draft(text: str, *, tag: str, owner: Scope = ANN) -> EpisodeDraft:
    return EpisodeDraft(
        scope=owner,
        episode_type="bugfix",
        title="",
        tags=(tag,),
        sections=Sections(context=text),
        occurred_at=utc_now(),
    )


TEXTS = {
    "certificate": "The billing service refused logins after its certificate was rotated.",
    "queue": "The billing queue grew because a consumer of the service had died.",
    "对账": "对账任务每天凌晨两次失败，因为支付网关证书过期。",
}


async def delivered(memory: Memory, owner_id: str = "ann") -> None:
    """Wait until nothing waits in the outbox."""
    memory.wake_deliveries()
    while True:
        page = await memory.outbox.page(owner_id, "pending", limit=100)
        waits = [entry for entry in page if entry.backend != "vectors"]
        if not waits:
            return
        await anyio.sleep(0.01)


async def written(memory: Memory, **texts: str) -> dict[str, str]:
    ids = {}
    for tag, text in (texts or TEXTS).items():
        made = await memory.writer.write(draft(text, tag=tag))
        assert made.episode_id is not None, made
        ids[tag] = made.episode_id
    await delivered(memory)
    return ids


async def asked(memory: Memory, query: str, scope: Scope = ANN, **fields: Any) -> ContextPack:
    return await memory.reader.recall(QueryPack(queries=(query,), scope=scope, **fields))


@pytest.mark.parametrize(
    ("query", "tag"), [("billing service certificate rotated", "certificate"), ("对账任务", "对账")]
)
async def test_why_says_that_memu_found_it_too(
    tmp_path: Path, kind: Kind, query: str, tag: str
) -> None:
    async with opened(tmp_path, kind.backend(tmp_path)) as memory:
        ids = await written(memory)
        pack = await asked(memory, query)
        assert (pack.items[0].id, list(pack.degraded)) == (ids[tag], [])
        assert "its words (place 1" in pack.items[0].why
        assert "memU (place 1)" in pack.items[0].why


async def test_what_was_forgotten_never_shows_though_memu_still_has_it(
    tmp_path: Path, kind: Kind
) -> None:
    async with opened(tmp_path, kind.backend(tmp_path)) as memory:
        ids = await written(memory)
        await memory.database.write(  # gone behind memU's back, as before it is told
            lambda connection: connection.execute(
                "DELETE FROM items WHERE id = ?", (ids["certificate"],)
            )
        )
        found = await memory.search.search("billing certificate rotated", scope=ANN)
        shown = {hit.item.id for hit in found.hits}
        assert ids["queue"] in shown
        assert ids["certificate"] not in shown


async def test_a_memu_that_fails_is_named_and_the_rest_is_shown(tmp_path: Path, kind: Kind) -> None:
    told: list[tuple[str, BreakerState]] = []
    events = MemoryEvents(on_breaker=lambda *change: told.append(change))
    async with opened(tmp_path, kind.backend(tmp_path), events=events) as memory:
        ids = await written(memory)
        kind.fail()
        packs = [await asked(memory, "billing certificate rotated") for _ in range(6)]
        assert [list(pack.degraded) for pack in packs] == [*[["memu_error"]] * 5, ["breaker_open"]]
        assert {pack.items[0].id for pack in packs} == {ids["certificate"]}
        assert "Memory backend degraded: memu_error." in packs[0].text
        assert told == [(f"{memory.deliveries[0].name}_reading", "open")]
        (health,) = await memory.health()
        assert (health.breaker, health.reading_breaker) == ("closed", "open")


@pytest.mark.parametrize("serves_vectors", [True, False])
async def test_what_the_index_and_memu_share_is_imported_before_either_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, serves_vectors: bool
) -> None:
    """Two threads that import it at once each get the half of it, now and then."""
    done: list[str] = []
    opening = anyio.Event()

    class Noting(MemuServerBackend):
        async def check(self) -> BackendHealth:
            done.append("memU is opened")
            opening.set()
            return BackendHealth(name=self.name, state="ok")

    monkeypatch.setattr(assemble, "import_module", done.append)
    backends = [Noting("http://127.0.0.1:9")]
    with anyio.fail_after(WAIT_S):
        async with whole_memory(tmp_path, backends=backends, serves_vectors=serves_vectors):
            await opening.wait()
    assert done == ["numpy", "memU is opened"][0 if serves_vectors else 1 :]
