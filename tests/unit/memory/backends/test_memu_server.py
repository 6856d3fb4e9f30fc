"""memU as a server: tasks that are waited for, answers that are not believed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from memory.errors import BackendUnavailable, DeliveryRefused
from memory.items.scope import Scope
from memory.outbox.backends import memu_server
from memory.outbox.backends.memu_server import LEFT_BEHIND, MemuServerBackend
from tests.conformance.suites.backends import item
from tests.unit.memory.backends.memu_services import FakeMemuServer, Reply, served

WAIT_S = 30
ANN = Scope(owner_id="ann")
LIMITS = {"_FIRST_WAIT_S": 1, "_MOST_WAIT_S": 4, "_MAX_LOOKS": 5, "_MAX_BYTES": 10_000}


@pytest.fixture(autouse=True)
def _limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in LIMITS.items():
        monkeypatch.setattr(memu_server, name, limit)


class Naps:
    """Waits no time, and notes how long it would have been."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def opened(
    server: FakeMemuServer, naps: Naps | None = None
) -> AsyncIterator[MemuServerBackend]:
    with served(server.answer) as address:
        backend = MemuServerBackend(f"{address}/", sleep=naps or Naps())
        try:
            with anyio.fail_after(WAIT_S):
                yield backend
        finally:
            await backend.close()


async def test_an_item_goes_as_its_owners_in_a_scope_of_its_own() -> None:
    server = FakeMemuServer()
    async with opened(server) as backend:
        links = await backend.put(item("epi_zh"), "k")
    (body,) = [body for path, body in server.asked if path == "/memorize"]
    assert (body["user_id"], body["agent_id"]) == ("ann", "epi_zh")
    assert "支付网关" in body["conversation"][0]["content"]
    assert [(link.remote_kind, link.remote_id) for link in links] == [
        ("agent", "epi_zh"),
        ("task", f"memorize-{0:032x}"),
    ]


async def test_a_task_is_looked_at_less_and_less_often_until_it_is_done() -> None:
    naps = Naps()
    async with opened(FakeMemuServer(looks=4), naps) as backend:
        await backend.put(item(), "k")
    assert naps.taken == [1, 2, 4, 4]


async def test_what_is_begun_says_which_task_and_for_which_delivery_until_it_is_done() -> None:
    async with opened(FakeMemuServer()) as backend:
        begun = await backend.begin(item(), (), 7)
        done = await backend.finish(item(), begun)
    assert {entry.remote_kind: entry.remote_id for entry in begun} == {
        "agent": "epi_en",
        "task": f"memorize-{0:032x}",
        "begun_for": "7",
    }
    assert [entry.remote_kind for entry in done] == ["agent", "task"]


STORIES = """
a task that was begun before a restart is gone on with
  7 looks: begin 7, finish! still, restart, same 7, finish = 1 task, 2 lines
a task that was done meanwhile is not begun again
  0 looks: begin 7, finish, restart, same 7, finish = 1 task, 2 lines
while the older task goes on no newer one is begun
  20 looks: begin 7, begin! still 8 = 1 task, 0 lines
an item may be forgotten and come again: what was made before is cleared then
  0 looks: begin 7, forget, begin 9, finish = 2 task, 2 lines
a forget waits for the task that is still going
  3 looks: begin 7, restart, forget, end = 1 task, 0 lines
a forget does not wait for a task that came to nothing
  0 looks: fail, begin 7, forget = 1 task, 0 lines
  0 looks: fail, begin 7, lose, forget = 0 task, 0 lines
a failed task is begun anew by the next try
  1 looks: fail, begin 7, finish! failed, mend, begin 7, finish = 2 task, 2 lines
a task that the server has lost is begun anew
  1 looks: begin 7, lose, begin 7, finish = 1 task, 2 lines
"""
"""How often the server is looked at, what is done in turn, and what the server has at the end.

`begin 7`: for the delivery 7; `same`: it says what it said before; `!`: it is refused so.
"""
REFUSED = {"still": "still at it", "failed": "could not memorize"}


async def live(story: str) -> tuple[int, int]:
    """Return how many tasks and lines the server has in the end."""
    looks, _, steps = story.strip().partition(" looks: ")
    server, links = FakeMemuServer(looks=int(looks)), ()
    for life in steps.split(", restart, "):
        async with opened(server) as backend:
            for step in life.split(", "):
                links = await act(server, backend, links, *step.split())
    return len(server.tasks), len(server.items)


async def act(
    server: FakeMemuServer, backend: MemuServerBackend, links: Any, what: str, *more: str
) -> Any:
    refused = REFUSED[more[0]] if what.endswith("!") else None
    with pytest.raises(BackendUnavailable, match=refused) if refused else nullcontext():
        match what.rstrip("!"):
            case "begin" | "same":
                begun = await backend.begin(item(), links, int(more[-1]))
                assert what != "same" or begun == links
                return begun
            case "finish":
                await backend.finish(item(), links)
            case "forget":
                with pytest.raises(DeliveryRefused):
                    await backend.forget("epi_en", links, "f")
            case "lose":
                server.tasks.clear()
            case "end":
                server.end_all()
            case "fail" | "mend":
                server.fails = what == "fail"
            case unknown:
                raise AssertionError(unknown)
    return links


async def test_tasks_are_gone_on_with_waited_for_and_begun_anew() -> None:
    misses = []
    for line in STORIES.strip().splitlines():
        story, _, expected = line.partition(" = ")
        if expected:
            tasks, lines = await live(story)
            if f"{tasks} task, {lines} lines" != expected:
                misses.append((line, tasks, lines))
    assert misses == []


async def test_a_newer_delivery_waits_for_the_task_of_the_older_one() -> None:
    """What the older one makes would else come after the clearing, and stay."""
    server = FakeMemuServer(looks=3)
    async with opened(server) as backend:
        begun = await backend.begin(item(body="old 旧"), (), 7)
    async with opened(server) as backend:
        newer = await backend.begin(item(body="new 新"), begun, 8)
        await backend.finish(item(), newer)
    assert [entry["summary"] for entry in server.items] == ["About epi_en: one line 一行", "new 新"]


async def test_forgetting_clears_the_items_scope_and_says_what_the_server_keeps() -> None:
    server = FakeMemuServer()
    async with opened(server) as backend:
        await backend.put(item("epi_zh"), "k")
        await backend.put(item(), "k")
        with pytest.raises(DeliveryRefused) as caught:
            await backend.forget("epi_en", (), "f")
    assert str(caught.value) == LEFT_BEHIND
    assert {entry["agent_id"] for entry in server.items} == {"epi_zh"}


STRANGE: list[Reply] = [
    (200, b"<html>"),
    (200, b"[" * 9_000),
    (200, b"x" * 20_000),
    (200, []),
    (200, {"status": "success"}),
    (200, {"status": "success", "result": []}),
    (500, {}),
    (503, b""),
    (404, {}),
    (401, {}),
    (302, {}),
]


async def test_a_server_is_not_believed() -> None:
    taken: list[tuple[str, Reply]] = []
    for path in ("/memorize", "/memorize/status/", "/retrieve"):
        for reply in STRANGE:
            server = FakeMemuServer(
                instead=lambda _, asked, path=path, reply=reply: (  # type: ignore[misc]
                    reply
                    if asked == path or (path.endswith("/") and asked.startswith(path))
                    else None
                )
            )
            async with opened(server) as backend:
                asks = partial(backend.retrieve, "q", ANN, limit=5)
                puts = partial(backend.put, item(), "k")
                try:
                    await (asks if path == "/retrieve" else puts)()
                except BackendUnavailable:
                    continue
                taken.append((path, reply))
    assert not taken


def answering(path: str, reply: Reply) -> FakeMemuServer:
    return FakeMemuServer(instead=lambda _, asked: reply if asked == path else None)


async def test_a_task_needs_a_name_that_cannot_lead_elsewhere() -> None:
    for task in ("", None, 7, "x" * 201, ["a"]):
        async with opened(answering("/memorize", (200, {"result": {"task_id": task}}))) as backend:
            with pytest.raises(BackendUnavailable, match="not known"):
                await backend.put(item(), "k")
    server = answering("/memorize", (200, {"result": {"task_id": "../../clear?x=1"}}))
    async with opened(server) as backend:
        with pytest.raises(BackendUnavailable):
            await backend.put(item(), "k")
    assert server.asked[-1][0] == "/memorize/status/..%2F..%2Fclear%3Fx%3D1"


async def test_what_the_server_calls_wrong_is_not_sent_again() -> None:
    for status in (400, 413, 422):
        async with opened(answering("/memorize", (status, {"detail": "secret"}))) as backend:
            with pytest.raises(DeliveryRefused) as caught:
                await backend.put(item(), "k")
        assert "secret" not in str(caught.value)


async def test_nothing_is_memorized_where_the_old_could_not_be_cleared() -> None:
    server = FakeMemuServer(instead=lambda _, path: (500, {}) if path == "/clear" else None)
    async with opened(server) as backend:
        with pytest.raises(BackendUnavailable):
            await backend.put(item(), "k")
        with pytest.raises(BackendUnavailable):
            await backend.forget("epi_en", (), "f")
    assert server.tasks == {}


async def test_what_is_found_must_be_items() -> None:
    strange = [None, 7, {}, {"agent_id": 7, "user_id": "ann"}]
    async with opened(answering("/retrieve", (200, {"result": {"items": strange}}))) as backend:
        assert await backend.retrieve("q", ANN, limit=5) == []
    for found in (None, "x"):
        async with opened(answering("/retrieve", (200, {"result": {"items": found}}))) as backend:
            with pytest.raises(BackendUnavailable):
                await backend.retrieve("q", ANN, limit=5)


async def test_health_tells_of_a_server_that_fails_or_is_away() -> None:
    failing = FakeMemuServer(instead=lambda *_: (500, {}))
    async with opened(failing) as backend:
        health = await backend.check()
        assert (health.state, health.detail) == ("failing", "The memU server failed (HTTP 500).")
    away = MemuServerBackend("http://127.0.0.1:9")
    health = await away.check()
    assert (health.state, health.detail) == ("failing", "The memU server cannot be reached.")
    await away.close()


@dataclass
class PlainMemuServer:
    """A server that answers at once, without tasks and without `/clear`, and as `bare` without an envelope."""

    bare: bool
    asked: list[str] = field(default_factory=list)

    def answer(self, method: str, path: str, body: Any) -> Reply:
        self.asked.append(path)
        match path:
            case "/memorize":
                made: dict[str, Any] = {
                    "resource": {"id": "res-1"},
                    "items": [{"id": "itm-1"}, {"id": 7}, "x", {"id": "itm-2"}],
                    "categories": [{"id": "cat-1", "name": "ops"}],
                }
            case "/retrieve":
                made = {"items": [{"agent_id": "epi_en", "user_id": "ann"}]}
            case _:
                return 404, {"detail": "Not Found"}
        return 200, made if self.bare else {"status": "success", "result": made}


@pytest.mark.parametrize("bare", [True, False])
async def test_a_server_without_tasks_and_clearing_is_done_at_once(bare: bool) -> None:  # noqa: FBT001
    server = PlainMemuServer(bare)
    with served(server.answer) as address:
        backend = MemuServerBackend(address, sleep=Naps())
        begun = await backend.begin(item(), (), 7)
        assert await backend.begin(item(), begun, 7) == begun  # after a restart
        links = await backend.finish(item(), begun)
        found = await backend.retrieve("gateway", ANN, limit=5)
        with pytest.raises(DeliveryRefused, match="by hand"):
            await backend.forget("epi_en", links, "f")
        await backend.close()
    assert {(link.remote_kind, link.remote_id) for link in links} == {
        ("agent", "epi_en"),
        ("resource", "res-1"),
        ("item", "itm-1"),
        ("item", "itm-2"),
        ("category", "cat-1"),
    }
    assert found == ["epi_en"]
    assert server.asked.count("/memorize") == 1


async def test_what_a_task_made_is_linked_where_its_answer_names_it() -> None:
    made = {"status": "COMPLETED", "categories": [{"id": "cat-1"}]}

    def instead(_: str, path: str) -> Reply | None:
        return (200, {"result": made}) if path.startswith("/memorize/status/") else None

    async with opened(FakeMemuServer(instead=instead)) as backend:
        links = await backend.put(item(), "k")
    assert [link.remote_kind for link in links] == ["agent", "task", "category"]
