"""memU as a server: tasks that are waited for, answers that are not believed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from memory.backends.memu_server import LEFT_BEHIND, MemuServerBackend, MemuServerLimits
from memory.outbox.backend import BackendUnavailable, DeliveryRefused
from memory.scope import Scope
from tests.conformance.suites.backends import item
from tests.unit.memory.backends.memu_services import FakeMemuServer, Reply, served

WAIT_S = 30
ANN = Scope(owner_id="ann")
LIMITS = MemuServerLimits(first_wait_s=1, most_wait_s=4, max_looks=5, max_bytes=10_000)


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
        backend = MemuServerBackend(f"{address}/", limits=LIMITS, sleep=naps or Naps())
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


async def test_a_task_that_was_begun_before_a_restart_is_gone_on_with() -> None:
    server = FakeMemuServer(looks=7)
    async with opened(server) as backend:
        begun = await backend.begin(item("epi_zh"), (), 7)
        with pytest.raises(BackendUnavailable, match="still at it"):
            await backend.finish(item("epi_zh"), begun)
    async with opened(server) as backend:
        assert await backend.begin(item("epi_zh"), begun, 7) == begun
        await backend.finish(item("epi_zh"), begun)
    assert [path for path, _ in server.asked].count("/memorize") == 1
    assert len(server.items) == 2, "its two lines, once"


async def test_a_task_that_was_done_meanwhile_is_not_begun_again() -> None:
    server = FakeMemuServer(looks=0)
    async with opened(server) as backend:
        begun = await backend.begin(item(), (), 7)
        await backend.finish(item(), begun)
    async with opened(server) as backend:
        assert await backend.begin(item(), begun, 7) == begun
        await backend.finish(item(), begun)
    assert len(server.tasks) == 1
    assert len(server.items) == 2


async def test_a_newer_delivery_waits_for_the_task_of_the_older_one() -> None:
    """What the older one makes would else come after the clearing, and stay."""
    server = FakeMemuServer(looks=3)
    async with opened(server) as backend:
        begun = await backend.begin(item(body="old 旧"), (), 7)
    async with opened(server) as backend:
        newer = await backend.begin(item(body="new 新"), begun, 8)
        await backend.finish(item(), newer)
    assert [entry["summary"] for entry in server.items] == ["About epi_en: one line 一行", "new 新"]


async def test_while_the_older_task_goes_on_no_newer_one_is_begun() -> None:
    server = FakeMemuServer(looks=20)
    async with opened(server) as backend:
        begun = await backend.begin(item(), (), 7)
        with pytest.raises(BackendUnavailable, match="still at it"):
            await backend.begin(item(), begun, 8)
    assert len(server.tasks) == 1


async def test_a_task_that_was_done_for_another_delivery_is_no_reason_to_begin_none() -> None:
    """An item may be forgotten and come again; what was made before is cleared then."""
    server = FakeMemuServer(looks=0)
    async with opened(server) as backend:
        begun = await backend.begin(item(), (), 7)
        with pytest.raises(DeliveryRefused):
            await backend.forget("epi_en", begun, "f")
        await backend.finish(item(), await backend.begin(item(), begun, 9))
    assert len(server.items) == 2


async def test_a_forget_waits_for_the_task_that_is_still_going() -> None:
    server = FakeMemuServer(looks=3)
    async with opened(server) as backend:
        begun = await backend.begin(item(), (), 7)
    async with opened(server) as backend:
        with pytest.raises(DeliveryRefused):
            await backend.forget("epi_en", begun, "f")
        server.end_all()
    assert server.items == []


@pytest.mark.parametrize("came_to", ["failed", "lost"])
async def test_a_forget_does_not_wait_for_a_task_that_came_to_nothing(came_to: str) -> None:
    server = FakeMemuServer(looks=0, fails=True)
    async with opened(server) as backend:
        begun = await backend.begin(item(), (), 7)
        if came_to == "lost":
            server.tasks.clear()
        with pytest.raises(DeliveryRefused):
            await backend.forget("epi_en", begun, "f")


async def test_forgetting_clears_the_items_scope_and_says_what_the_server_keeps() -> None:
    server = FakeMemuServer()
    async with opened(server) as backend:
        await backend.put(item("epi_zh"), "k")
        await backend.put(item(), "k")
        with pytest.raises(DeliveryRefused) as caught:
            await backend.forget("epi_en", (), "f")
    assert str(caught.value) == LEFT_BEHIND
    assert {entry["agent_id"] for entry in server.items} == {"epi_zh"}


async def test_a_failed_task_is_begun_anew_by_the_next_try() -> None:
    server = FakeMemuServer(fails=True)
    async with opened(server) as backend:
        begun = await backend.begin(item(), (), 7)
        with pytest.raises(BackendUnavailable, match="could not memorize"):
            await backend.finish(item(), begun)
        server.fails = False
        await backend.finish(item(), await backend.begin(item(), begun, 7))
    assert len(server.tasks) == 2
    assert len(server.items) == 2


async def test_a_task_that_the_server_has_lost_is_begun_anew() -> None:
    server = FakeMemuServer()
    async with opened(server) as backend:
        begun = await backend.begin(item(), (), 7)
        server.tasks.clear()
        await backend.finish(item(), await backend.begin(item(), begun, 7))
    assert len(server.items) == 2


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
