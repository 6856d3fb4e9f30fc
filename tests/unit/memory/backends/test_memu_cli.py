"""memU's real package in this process, with an embeddings endpoint on loopback."""

import sys
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from memory.errors import BackendUnavailable, DeliveryRefused
from memory.items.scope import Scope
from tests.conformance.suites.backends import item
from tests.unit.memory.backends.memu_services import (
    FakeEmbeddings,
)
from tests.unit.memory.backends.memu_services import opened_memu as opened

ANN = Scope(owner_id="ann")
SOON_S = 30
"""Sooner than the endpoint is given up."""


async def test_it_stays_in_the_directory_that_it_was_given(tmp_path: Path, address: str) -> None:
    async with opened(tmp_path / "deep" / "memu", address) as backend:
        await backend.put(item(), "k")
    names = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()]
    assert names == ["deep/memu/memu.sqlite3"]


async def test_what_is_forgotten_is_not_left_on_the_disk(tmp_path: Path, address: str) -> None:
    word = "zebrafish斑马鱼"
    file = tmp_path / "memu.sqlite3"
    async with opened(tmp_path, address) as backend:
        await backend.put(item(body=f"{word} one\n{word} two", title=word), "k")
        assert word.encode() in file.read_bytes()
        await backend.forget("epi_en", (), "f")
        assert word.encode() not in file.read_bytes()


async def test_an_unchanged_line_is_not_embedded_again(
    tmp_path: Path, address: str, endpoint: FakeEmbeddings
) -> None:
    async with opened(tmp_path, address) as backend:
        await backend.put(item(body="one line\nanother line"), "k1")
        endpoint.asked.clear()
        await backend.put(item(body="one line\na third line", revision=2), "k2")
        assert endpoint.asked == [["a third line"]]


async def test_a_long_item_is_cut_and_embedded_in_batches(
    tmp_path: Path, address: str, endpoint: FakeEmbeddings
) -> None:
    async with opened(tmp_path, address) as backend:
        await backend.put(item(body="\n".join(f"line {n}" for n in range(5000))), "k")
    assert max(len(some) for some in endpoint.asked) == 50
    assert sum(len(some) for some in endpoint.asked) == 201


async def test_an_endpoint_that_failed_half_way_is_made_up_for_by_the_next_try(
    tmp_path: Path, address: str, endpoint: FakeEmbeddings
) -> None:
    async with opened(tmp_path, address) as backend:
        endpoint.instead = lambda texts: (503, {}) if "billing" in texts[0] else None
        with pytest.raises(BackendUnavailable, match="HTTP 503") as caught:
            await backend.put(item(), "k")
        assert address not in str(caught.value)
        endpoint.instead = lambda _: None
        await backend.put(item(), "k")
        assert await backend.retrieve("billing service", ANN, limit=5) == ["epi_en"]


async def test_texts_that_the_endpoint_calls_wrong_are_not_sent_again(
    tmp_path: Path, address: str, endpoint: FakeEmbeddings
) -> None:
    endpoint.instead = lambda _: (400, {"error": "too long"})
    async with opened(tmp_path, address) as backend:
        with pytest.raises(DeliveryRefused):
            await backend.put(item(), "k")


async def test_an_endpoint_that_is_away_is_told_and_the_file_is_well(tmp_path: Path) -> None:
    async with opened(tmp_path, "http://127.0.0.1:9/v1") as backend:
        with pytest.raises(BackendUnavailable, match="cannot be reached"):
            await backend.put(item(), "k")
        assert (await backend.check()).state == "ok"


async def test_a_directory_that_cannot_be_used_is_told(tmp_path: Path, address: str) -> None:
    (tmp_path / "memu").write_text("in the way")
    async with opened(tmp_path / "memu", address) as backend:
        health = await backend.check()
        assert health.state == "failing"
        assert str(tmp_path) not in str(health.detail)


async def test_without_the_package_one_sentence_says_how_to_get_it(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "memu.app", None)
    async with opened(tmp_path, address) as backend:
        health = await backend.check()
        assert "pip install 'candor[memu]'" in str(health.detail)
        with pytest.raises(BackendUnavailable, match="not installed"):
            await backend.put(item(), "k")


async def test_a_call_that_hangs_can_be_cancelled_at_once(tmp_path: Path) -> None:
    begun = anyio.Event()

    async def hang(stream: SocketStream) -> None:
        async with stream:
            begun.set()
            await anyio.sleep_forever()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as serving:
        serving.start_soon(listener.serve, hang)
        async with opened(tmp_path, f"http://127.0.0.1:{port}/v1") as backend:
            with anyio.fail_after(SOON_S):
                async with anyio.create_task_group() as calling:
                    calling.start_soon(backend.put, item(), "k")
                    await begun.wait()
                    calling.cancel_scope.cancel()
            assert (await backend.check()).state == "ok"
        serving.cancel_scope.cancel()


async def test_settings_and_proxies_of_the_environment_are_not_used(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MEMU_HTTP_PROXY", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "MEMU_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with opened(tmp_path, address) as backend:
        assert await backend.put(item(), "k")
