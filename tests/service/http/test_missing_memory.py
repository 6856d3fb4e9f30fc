"""A server whose memory's file is damaged: it answers turns, and says everywhere what is gone and what helps."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
from starlette.requests import Request

from gateway.http.context import AppState, HttpLimits, RequestContext
from gateway.ids import LOCAL_USER as ME
from memory.service.assemble import FILE
from tests.service.http.client import Client
from tests.service.http.stage import assert_error, running
from tests.support.services import RunningServices, running_services, script

WROTE = script({"tool": "Bash", "input": {"command": "cat a.txt"}}, {"text": "Done."})


@asynccontextmanager
async def damaged(root: Path) -> AsyncIterator[tuple[RunningServices, Client]]:
    """Run the server on a memory of which the first page was overwritten."""
    async with running_services(root) as services:
        file = anyio.Path(services.settings.data_dir / FILE)
    whole = await file.read_bytes()
    await file.write_bytes(b"\xa5" * 4096 + whole[4096:])
    async with running(root) as told:
        yield told


ROUTES = [
    *(("GET", "/memory/search?q=cat"), ("GET", "/memory/items/epi_1")),
    *(("DELETE", "/memory/items/epi_1"), ("GET", "/memory/intents"), ("GET", "/memory/outbox")),
    ("GET", "/memory/cases/search?q=cat"),
]


async def test_it_is_ready_and_says_everywhere_what_is_gone_and_what_helps(tmp_path: Path) -> None:
    async with damaged(tmp_path) as (services, client):
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["ready"]) == (200, True)
        part = answer.json()["parts"]["memory"]
        assert (part["ok"], part["state"]) == (False, "unavailable")
        assert "damaged" in part["detail"]
        assert part["detail"].endswith("restart the server.")
        for method, path in ROUTES:
            answer = await client.request(method, path)
            error = assert_error(answer, 503, "storage_unavailable")
            assert error["retryable"] is False, "trying again does not help"
            assert "Retry-After" not in answer.headers
            assert "damaged" in error["message"]
            assert error["message"].endswith("restart the server.")
        state = AppState(services=services, limits=HttpLimits())
        context = RequestContext(request=Request({"type": "http"}), state=state, user_id=ME)
        (vectors,) = (await context.memory_health())["backends"]
        assert (vectors["name"], vectors["state"]) == ("vectors", "unavailable")
        assert "damaged" in vectors["detail"]


async def test_a_turn_is_answered_and_says_that_it_will_not_be_remembered(tmp_path: Path) -> None:
    async with damaged(tmp_path) as (services, _):
        result = await services.ask(WROTE)
        lines = await services.journal_of(result)
        counted, _type = services.metrics.render()
        forgetful = await services.create()
        await services.change(forgetful, memory_enabled=False)
        other = await services.ask(WROTE, forgetful)
    assert (result["outcome"], result["reply"]) == ("answered", "Done.")
    told = {notice["code"]: notice["message"] for notice in result["notices"]}
    assert "/readyz says why" in told["memory_not_written"]
    assert lines[0]["memory"] == "missing"
    assert result["memory"]["degraded"] == ["memory_failed"]
    assert b"candor_turns_not_recorded_total 1.0" in counted
    assert other["notices"] == [], "a conversation without memory loses nothing"


def damage_the_words_blocking(file: Path) -> None:
    """Overwrite the page at which the index of words begins."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'item_words_data'"
        ).fetchone()
    with file.open("r+b") as opened:
        opened.seek((page - 1) * size)
        opened.write(b"\xab" * size)


async def test_damage_that_only_a_search_meets_is_told_from_then_on(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        await services.ask(WROTE)
    file = services.settings.data_dir / FILE
    await anyio.to_thread.run_sync(damage_the_words_blocking, file)
    async with running(tmp_path) as (services, client):
        found = await client.read("/memory/search?q=cat")
        told = await services.open_memory.database.ping()
    assert found["degraded"] != []
    assert told is not None
    # Read or written: what is remembered later may meet it first.
    assert "it is damaged." in told
