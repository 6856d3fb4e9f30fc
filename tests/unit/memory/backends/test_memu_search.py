"""Questions to memU's package: beside deliveries, never longer than wanted, nothing read twice."""

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from memory.backends import memu_search
from memory.backends.memu_cli import MemuCliBackend
from memory.backends.memu_embeddings import EmbeddingService
from memory.backends.memu_package import driven
from memory.backends.memu_search import MemuSearch
from memory.outbox.backend import BackendUnavailable, DeliveryRefused
from memory.scope import Scope
from tests.conformance.suites.backends import item
from tests.unit.memory.backends.memu_services import FakeEmbeddings, Reply, vector_of
from tests.unit.memory.backends.open_memu import WAIT_S, opened

ANN = Scope(owner_id="ann")
BOB = Scope(owner_id="bob")


class Gate:
    """Holds a search until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        search = MemuSearch._nearest_files  # noqa: SLF001  the part that runs in a thread

        def held(memu: MemuSearch, vector: list[float], owner_ids: Sequence[str]) -> list[str]:
            self.entered.set()
            assert self.opened.wait(WAIT_S)
            return search(memu, vector, owner_ids)

        monkeypatch.setattr(MemuSearch, "_nearest_files", held)

    async def wait_entered(self) -> None:
        assert await anyio.to_thread.run_sync(self.entered.wait, WAIT_S)


async def left_behind(backend: MemuCliBackend, gate: Gate) -> None:
    """Ask, and go away while memU is at it."""
    async with anyio.create_task_group() as asking:

        async def ask() -> None:
            await backend.retrieve("billing", ANN, limit=5)

        asking.start_soon(ask)
        await gate.wait_entered()
        asking.cancel_scope.cancel()


async def test_whoever_asks_can_go_while_memu_is_at_it_and_nobody_else_waits_for_it(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, address) as backend:
        await backend.put(item(), "k")
        gate = Gate(monkeypatch)
        await left_behind(backend, gate)
        assert not gate.opened.is_set(), "memU is still at it"
        with pytest.raises(BackendUnavailable, match="still at an earlier question"):
            await backend.retrieve("billing", ANN, limit=5)
        await backend.put(item("epi_zh"), "k2")
        gate.opened.set()


async def test_one_that_was_left_behind_is_done_before_it_is_closed(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, address) as backend:
        await backend.put(item(), "k")
        gate = Gate(monkeypatch)
        await left_behind(backend, gate)
        closed = anyio.Event()

        async def close() -> None:
            await backend.close()
            closed.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(close)
            with anyio.move_on_after(0.1):
                await closed.wait()
            too_early = closed.is_set()
            gate.opened.set()
        assert not too_early, "memU was still at it"


async def test_a_question_does_not_wait_for_a_delivery(
    tmp_path: Path, address: str, endpoint: FakeEmbeddings
) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def hold(texts: list[str]) -> Reply | None:
        if any("slow" in text for text in texts):
            entered.set()
            assert go_on.wait(WAIT_S)
        return None

    async with opened(tmp_path, address) as backend:
        await backend.put(item(), "k")
        endpoint.instead = hold
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(backend.put, item("epi_slow", "slow"), "k2")
            assert await anyio.to_thread.run_sync(entered.wait, WAIT_S)
            assert await backend.retrieve("billing", ANN, limit=5) == ["epi_en"]
            go_on.set()


async def test_who_asks_while_another_does_waits_for_his_turn(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, address) as backend:
        await backend.put(item(), "k")

        async def at_once(_: EmbeddingService, texts: list[str]) -> list[list[float]]:
            await anyio.lowlevel.checkpoint()
            return [vector_of(text) for text in texts]

        monkeypatch.setattr(EmbeddingService, "vectors", at_once)
        gate = Gate(monkeypatch)
        found: list[Sequence[str]] = []

        async def ask() -> None:
            found.append(await backend.retrieve("billing", ANN, limit=5))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await gate.wait_entered()
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            gate.opened.set()
        assert found == [["epi_en"], ["epi_en"]]


async def test_the_answer_is_the_one_that_memu_gives(tmp_path: Path, address: str) -> None:
    """Its own way, which reads every vector anew, on the same file."""
    bodies = {
        "epi_billing": "billing service restarts\nrotated certificate\ninvoice run",
        "epi_zh": "支付网关 升级\n证书 重新 加载\nbilling 账单",
        "epi_long": "\n".join(f"alpha bravo {number}" for number in range(60)),
        "epi_other": "green tea\ninvoice of the certificate",
    }
    async with opened(tmp_path, address) as backend:
        for name, body in bodies.items():
            await backend.put(item(name, body), name)
        near = {"billing certificate": 3, "支付网关 证书": 1, "alpha": 1, "invoice": 2, "tea": 1}
        for query, count in near.items():  # what shares no word is in no order
            found = await backend.retrieve(query, ANN, limit=5)

            def ask(memu: Any, query: str = query) -> list[str]:
                answer = driven(memu.progressive_retrieve(query, where={"user_id__in": ["ann"]}))
                return [file["name"] for file in answer["files"]]

            own = await backend._in_thread(ask)  # noqa: SLF001  memU itself
            assert found[:count] == own[:count], query


async def test_no_line_is_read_twice(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    read_lines = memu_search._read  # noqa: SLF001  the one place where lines are read

    def counting(connection: sqlite3.Connection, ids: Sequence[str]) -> object:
        read.extend(ids)
        return read_lines(connection, ids)

    monkeypatch.setattr(memu_search, "_read", counting)
    async with opened(tmp_path, address) as backend:
        await backend.put(item(body="one 一\ntwo 二\nthree 三"), "k")
        await backend.retrieve("one", ANN, limit=5)
        of_first = len(read)
        await backend.put(item(body="one 一\nfour 四\nthree 三", revision=2), "k2")
        await backend.retrieve("四", ANN, limit=5)
        assert (of_first, len(read)) == (3, 4)


async def test_lines_that_are_gone_are_not_found(tmp_path: Path, address: str) -> None:
    async with opened(tmp_path, address) as backend:
        await backend.put(item(body="one\ntwo"), "k")
        await backend.put(item("epi_zh", "三\n四\n五"), "k2")
        assert (await backend.retrieve("三", ANN, limit=5))[0] == "epi_zh"
        await backend.forget("epi_zh", (), "f")
        assert await backend.retrieve("三", ANN, limit=5) == ["epi_en"]


async def test_lines_of_another_model_are_passed_over(tmp_path: Path, address: str) -> None:
    async with opened(tmp_path, address) as backend:
        await backend.put(item(), "k")
        await backend.put(item("epi_old", "billing service"), "k2")
    with closing(sqlite3.connect(tmp_path / "memu.sqlite3")) as connection:
        for vector, agent in (("[1.0, 0.5]", "epi_old"), ("null", "epi_old")):
            connection.execute(
                "UPDATE memu_recall_file_segments SET embedding = ? WHERE agent_id = ?",
                (vector, agent),
            )
            connection.commit()
            async with opened(tmp_path, address) as backend:
                assert await backend.retrieve("billing service", ANN, limit=5) == ["epi_en"]


async def test_where_memu_holds_too_much_it_says_so(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, address) as backend:
        await backend.put(item(body="one\ntwo"), "k")
        await backend.put(item("epi_bob", "billing", scope=BOB), "k2")
        monkeypatch.setattr(memu_search, "_MOST_LINES", 1)
        with pytest.raises(BackendUnavailable, match="more than can be looked through"):
            await backend.retrieve("one", ANN, limit=5)
        assert await backend.retrieve("billing", BOB, limit=5) == ["epi_bob"]


async def test_what_is_kept_of_others_makes_room(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, address) as backend:
        await backend.put(item(body="one\ntwo"), "k")
        await backend.put(item("epi_bob", "billing\nbill", scope=BOB), "k2")
        monkeypatch.setattr(memu_search, "_MOST_NUMBERS", 2 * 64)
        for _ in range(2):
            assert await backend.retrieve("one", ANN, limit=5) == ["epi_en"]
            assert await backend.retrieve("billing", BOB, limit=5) == ["epi_bob"]
        monkeypatch.setattr(memu_search, "_MOST_NUMBERS", 64)
        with pytest.raises(BackendUnavailable, match="more than can be looked through"):
            await backend.retrieve("one", ANN, limit=5)


async def test_before_anything_was_delivered_nothing_is_named(tmp_path: Path, address: str) -> None:
    async with opened(tmp_path / "memu", address) as backend:
        assert await backend.retrieve("billing", ANN, limit=5) == []
    assert not (tmp_path / "memu").exists()


async def test_a_file_that_is_none_of_memus_is_told(tmp_path: Path, address: str) -> None:
    (tmp_path / "memu.sqlite3").write_bytes(b"not a database" * 100)
    async with opened(tmp_path, address) as backend:
        with pytest.raises(BackendUnavailable, match="memU failed"):
            await backend.retrieve("billing", ANN, limit=5)


async def test_an_endpoint_that_is_away_or_refuses_is_told(
    tmp_path: Path, address: str, endpoint: FakeEmbeddings
) -> None:
    async with opened(tmp_path, address) as backend:
        await backend.put(item(), "k")
        endpoint.instead = lambda _: (503, {})
        with pytest.raises(BackendUnavailable, match="HTTP 503"):
            await backend.retrieve("billing", ANN, limit=5)
        endpoint.instead = lambda _: (400, {})
        with pytest.raises(DeliveryRefused, match="HTTP 400"):
            await backend.retrieve("billing", ANN, limit=5)


async def test_reading_stops_when_it_is_closed(tmp_path: Path, address: str) -> None:
    async with opened(tmp_path, address) as backend:
        await backend.put(item(), "k")
        backend._search._is_stopped.set()  # noqa: SLF001  as `close` does while a search runs
        with pytest.raises(BackendUnavailable, match="being closed"):
            await backend.retrieve("billing", ANN, limit=5)
